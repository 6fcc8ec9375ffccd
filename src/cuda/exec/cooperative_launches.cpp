// Compares the blocks of a cooperative launch with what the SMs of a mask hold at once.
#include "exec/cooperative_launches.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "calls/own_calls.hpp"
#include "demarc/cuda/driver.hpp"

namespace demarc::cuda {
namespace {

constexpr std::string_view cooperative_functions[] = {"cuLaunchCooperativeKernel",
                                                      "cuLaunchCooperativeKernelMultiDevice",
                                                      "cuLaunchKernelEx",
                                                      "cuGraphKernelNodeSetAttribute",
                                                      "cuGraphKernelNodeCopyAttributes",
                                                      "cuGraphKernelNodeSetParams",
                                                      "cuGraphExecKernelNodeSetParams",
                                                      "cuGraphNodeSetParams",
                                                      "cuGraphExecNodeSetParams"};

template <class T>
T grid_member(const char* params, std::size_t offset) {
  T value;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a handle, which is a pointer
  std::memcpy(&value, params + offset, sizeof(T));
  return value;
}

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

std::span<const std::string_view> CooperativeLaunches::functions() {
  return cooperative_functions;
}

std::optional<std::string> CooperativeLaunches::too_large(const Grid& grid) const {
  HardwareMask mask;
  if (!mask_.load(mask)) return std::nullopt;
  const OwnCalls own;
  const auto driver = Driver::load();
  int of_an_sm = 0;
  if (!driver || sms_per_tpc_ == 0 ||
      (*driver)->api().cuOccupancyMaxActiveBlocksPerMultiprocessor(
          &of_an_sm, grid.function, grid.threads, grid.shared_bytes) != cu_success) {
    return "the driver does not tell how many blocks of this cooperative launch an SM holds, so it "
           "might wait for ever";
  }
  const std::uint64_t sms = std::uint64_t{enabled_tpcs(mask)} * sms_per_tpc_;
  const std::uint64_t most = sms * static_cast<std::uint64_t>(std::max(of_an_sm, 0));
  if (grid.blocks <= most) return std::nullopt;
  return fmt::format(
      "a cooperative launch of {} blocks would wait for ever: the {} SMs of the partition hold {} "
      "of them at once; size the grid by these SMs, and not by the card's",
      grid.blocks, sms, most);
}

// CUDA_KERNEL_NODE_PARAMS: the function, the grid, the block, shared memory; the kernel of a
// library in the place of a function comes last.
std::optional<std::string> CooperativeLaunches::of_node(const char* params) const {
  if (params == nullptr) return std::nullopt;
  auto function = grid_member<CuFunction>(params, 0);
  if (function == nullptr) function = grid_member<CuFunction>(params, 56);
  std::uint64_t blocks = 1;
  int threads = 1;
  for (const std::size_t at : {8U, 12U, 16U}) blocks *= grid_member<unsigned>(params, at);
  for (const std::size_t at : {20U, 24U, 28U}) threads *= grid_member<int>(params, at);
  return too_large({function, blocks, threads, grid_member<unsigned>(params, 32)});
}

std::optional<std::string> CooperativeLaunches::refusal(const DriverCall& call) {
  const std::string_view name = call.base_name();
  if (name == "cuLaunchCooperativeKernel") {
    any_.store(true);
    Grid grid{call.argument<CuFunction>(0), 1, 1, call.argument<unsigned>(32)};
    for (const std::size_t at : {8U, 12U, 16U}) grid.blocks *= call.argument<unsigned>(at);
    for (const std::size_t at : {20U, 24U, 28U}) grid.threads *= call.argument<int>(at);
    return too_large(grid);
  }
  if (name == "cuLaunchKernelEx") {
    const auto* config = call.argument<const CuLaunchConfig*>(0);
    if (config == nullptr || !is_cooperative(*config)) return std::nullopt;
    any_.store(true);
    Grid grid{call.argument<CuFunction>(8), 1, 1, config->shared_bytes};
    for (const unsigned size : config->grid) grid.blocks *= size;
    for (const unsigned size : config->block) grid.threads *= static_cast<int>(size);
    return too_large(grid);
  }
  HardwareMask mask;
  if (!mask_.load(mask)) return std::nullopt;
  if (name == "cuLaunchCooperativeKernelMultiDevice") {
    return "a cooperative launch on several cards cannot be compared with the SMs of a partition";
  }
  if (name == "cuGraphKernelNodeSetAttribute") {
    const auto* value = call.argument<const int*>(16);
    if (call.argument<int>(8) != CuLaunchAttribute::cooperative || value == nullptr ||
        *value == 0) {
      return std::nullopt;
    }
    return "a node that is made cooperative by hand cannot be compared with the SMs of the "
           "partition; capture its launch instead";
  }
  // Once the program launches so, each node of its graphs may be such a launch.
  if (!any_.load()) return std::nullopt;
  if (name == "cuGraphKernelNodeCopyAttributes") {
    return "a node that gets the attributes of another may become cooperative, and cannot be "
           "compared with the SMs of the partition; capture its launch instead";
  }
  constexpr std::size_t in_any_node = 16;  // CUgraphNodeParams: the type, then what a kernel has
  if (name == "cuGraphKernelNodeSetParams") return of_node(call.argument<const char*>(8));
  if (name == "cuGraphExecKernelNodeSetParams") return of_node(call.argument<const char*>(16));
  const bool launched = name == "cuGraphExecNodeSetParams";
  if (!launched && name != "cuGraphNodeSetParams") return std::nullopt;
  const auto* params = call.argument<const char*>(launched ? 16 : 8);
  if (params == nullptr || grid_member<int>(params, 0) != 0) return std::nullopt;
  return of_node(params + in_any_node);
}

}  // namespace demarc::cuda
