// Compares the blocks of a cooperative launch with what the SMs of a mask hold at once.
#include "process/cooperative_launches.hpp"

#include <algorithm>
#include <bit>

#include "calls/own_calls.hpp"
#include "demarc/driver/driver.hpp"

namespace demarc::cuda {
namespace {

std::uint32_t enabled_tpcs(const HardwareMask& mask) {
  std::uint32_t enabled = 0;
  for (const std::uint32_t word : mask.disabled) {
    enabled += static_cast<std::uint32_t>(std::popcount(~word));
  }
  return enabled;
}

bool is_cooperative(const CuLaunchConfig& config) {
  return std::any_of(config.attributes, config.attributes + config.attribute_count,
                     [](const CuLaunchAttribute& one) {
                       return one.id == CuLaunchAttribute::cooperative && one.value.flag != 0;
                     });
}

}  // namespace

std::optional<std::string> CooperativeLaunches::too_large(CuFunction function, const Size& grid,
                                                          const Size& block,
                                                          std::size_t shared_bytes) const {
  std::uint64_t blocks = 1;
  unsigned threads = 1;
  for (const unsigned size : grid) blocks *= size;
  for (const unsigned size : block) threads *= size;
  HardwareMask mask;
  if (!mask_.load(mask)) return std::nullopt;
  const OwnCalls own;
  const auto driver = Driver::load();
  int of_an_sm = 0;
  if (!driver || sms_per_tpc_ == 0 ||
      (*driver)->api().cuOccupancyMaxActiveBlocksPerMultiprocessor(
          &of_an_sm, function, static_cast<int>(threads), shared_bytes) != cu_success) {
    return "the driver does not tell how many blocks of this cooperative launch an SM holds, so it "
           "might wait for ever";
  }
  const std::uint64_t sms = std::uint64_t{enabled_tpcs(mask)} * sms_per_tpc_;
  const std::uint64_t most = sms * static_cast<std::uint64_t>(std::max(of_an_sm, 0));
  if (blocks <= most) return std::nullopt;
  return fmt::format(
      "a cooperative launch of {} blocks would wait for ever: the {} SMs of the partition hold {} "
      "of them at once; size the grid by these SMs, and not by the card's",
      blocks, sms, most);
}

template <class Node>
std::optional<std::string> CooperativeLaunches::of_node(const Node* node) const {
  if (node == nullptr) return std::nullopt;
  CuFunction function = node->function;
  if constexpr (requires { node->kernel; }) {
    if (function == nullptr) function = reinterpret_cast<CuFunction>(node->kernel);
  }
  return too_large(function, node->grid, node->block, node->shared_bytes);
}

std::optional<std::string> CooperativeLaunches::of_any_node(const CuAnyNode* node) const {
  constexpr int kernel_node = 0;  // CU_GRAPH_NODE_TYPE_KERNEL
  if (node == nullptr || node->type != kernel_node) return std::nullopt;
  return of_node(&node->kernel);
}

std::optional<std::string> CooperativeLaunches::of_launch(const DriverCall& call) {
  if (call.function() == DriverFunction::cuLaunchCooperativeKernel) {
    any_.store(true);
    const auto given = call.parameters<LaunchCooperative>();
    return too_large(given.function, {given.grid_x, given.grid_y, given.grid_z},
                     {given.block_x, given.block_y, given.block_z}, given.shared_bytes);
  }
  const auto given = call.parameters<LaunchKernelEx>();
  if (given.config == nullptr || !is_cooperative(*given.config)) return std::nullopt;
  any_.store(true);
  return too_large(given.function, given.config->grid, given.config->block,
                   given.config->shared_bytes);
}

std::optional<std::string> CooperativeLaunches::refusal(const DriverCall& call) {
  if (!call.does(does::may_cooperate)) return std::nullopt;
  if (call.does(does::launches)) return of_launch(call);
  HardwareMask mask;
  if (!mask_.load(mask)) return std::nullopt;
  if (call.function() == DriverFunction::cuLaunchCooperativeKernelMultiDevice) {
    return "a cooperative launch on several cards cannot be compared with the SMs of a partition";
  }
  if (call.function() == DriverFunction::cuGraphKernelNodeSetAttribute) {
    const auto [node, attribute, value] = call.parameters<SetNodeAttribute>();
    if (attribute != CuLaunchAttribute::cooperative || value == nullptr || *value == 0) {
      return std::nullopt;
    }
    return "a node that is made cooperative by hand cannot be compared with the SMs of the "
           "partition; capture its launch instead";
  }
  // Once the program launches so, each node of its graphs may be such a launch.
  if (!any_.load()) return std::nullopt;
  switch (call.function()) {
    case DriverFunction::cuGraphKernelNodeSetParams:
      return of_node(call.parameters<NodeParams<const CuKernelNodeV1>>().params);
    case DriverFunction::cuGraphKernelNodeSetParams_v2:
      return of_node(call.parameters<NodeParams<const CuKernelNode>>().params);
    case DriverFunction::cuGraphExecKernelNodeSetParams:
      return of_node(call.parameters<LaunchedNodeParams<CuKernelNodeV1>>().params);
    case DriverFunction::cuGraphExecKernelNodeSetParams_v2:
      return of_node(call.parameters<LaunchedNodeParams<CuKernelNode>>().params);
    case DriverFunction::cuGraphNodeSetParams:
      return of_any_node(call.parameters<NodeParams<const CuAnyNode>>().params);
    case DriverFunction::cuGraphExecNodeSetParams:
      return of_any_node(call.parameters<LaunchedNodeParams<CuAnyNode>>().params);
    default:
      return "a node that gets the attributes of another may become cooperative, and cannot be "
             "compared with the SMs of the partition; capture its launch instead";
  }
}

}  // namespace demarc::cuda
