// Answers the functions of the driver that add copies and fills to graphs, or change them there.
#include "calls/node_calls.hpp"

#include <algorithm>

#include "calls/own_calls.hpp"

namespace demarc::cuda {
namespace {

// CUgraphNodeType, those that are known.
enum NodeType : int {
  kernel_node = 0,
  copy_node = 1,
  fill_node = 2,
  host_node = 3,
  child_node = 4,
  empty_node = 5,
  waiting_node = 6,
  recording_node = 7,
};

// For an edge that is more than an order.
bool says_more(const char* edges, std::size_t count) {
  constexpr std::size_t edge_bytes = 8;  // CUgraphEdgeData
  if (edges == nullptr) return false;
  return std::any_of(edges, edges + count * edge_bytes, [](char byte) { return byte != 0; });
}

}  // namespace

std::span<const CallRow<NodeCalls>> NodeCalls::rows() {
  static constexpr CallRow<NodeCalls> table[] = {
      {DriverFunction::cuGraphAddMemcpyNode, &NodeCalls::add<CuCopy3d>},
      {DriverFunction::cuGraphAddMemsetNode, &NodeCalls::add<CuFillNode>},
      {DriverFunction::cuGraphAddNode, &NodeCalls::add_any<AddNode<CuAnyNode>>},
      {DriverFunction::cuGraphAddNode_v2, &NodeCalls::add_any<AddAnyNode>},
      {DriverFunction::cuGraphMemcpyNodeSetParams, &NodeCalls::set<CuCopy3d>},
      {DriverFunction::cuGraphMemsetNodeSetParams, &NodeCalls::set<CuFillNode>},
      {DriverFunction::cuGraphExecMemcpyNodeSetParams, &NodeCalls::set_launched<CuCopy3d>},
      {DriverFunction::cuGraphExecMemsetNodeSetParams, &NodeCalls::set_launched<CuFillNode>},
      {DriverFunction::cuGraphMemcpyNodeGetParams, &NodeCalls::get<CuCopy3d>},
      {DriverFunction::cuGraphMemsetNodeGetParams, &NodeCalls::get<CuFillNode>},
      {DriverFunction::cuGraphNodeGetType, &NodeCalls::type},
      {DriverFunction::cuGraphDestroy, &NodeCalls::destroy_graph},
      {DriverFunction::cuGraphDestroyNode, &NodeCalls::destroy_node},
  };
  return table;
}

CuResult NodeCalls::refuse(const char* why) const {
  means_.tell(fmt::format("a copy or fill of coloured memory as a node of a graph: {}", why));
  return cu_error_not_supported;
}

std::optional<NodeCalls::Node> NodeCalls::find(CuGraphNode node) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second);
}

// Memory that is pinned has an address by which kernels reach it.
bool NodeCalls::reach_host(WindowCopies::Side& place, std::uint64_t bytes) const {
  if (place.kind == WindowCopies::Side::Kind::device) return false;
  if (bytes == 0) return true;
  const OwnCalls own;
  DevicePointer first = 0;
  DevicePointer last = 0;
  const auto at = [](DevicePointer address) {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  };
  const auto& find = means_.api.cuMemHostGetDevicePointer_v2;
  if (find(&first, at(place.address), 0) != cu_success ||
      find(&last, at(place.address + bytes - 1), 0) != cu_success || last - first != bytes - 1) {
    return false;
  }
  place.address = first;
  return true;
}

CallAnswer NodeCalls::make_copy(const CuCopy3d& params, const WindowCopies::Use& use) const {
  using Kind = WindowCopies::Side::Kind;
  auto copy = CopyCalls::read(params);
  if (!copy) return cu_error_not_supported;
  if (!means_.copies.settle(*copy)) return cu_error_invalid_value;
  if (copy->to.kind != Kind::window && copy->from.kind != Kind::window) return std::nullopt;
  if (!copy->flatten()) return refuse("only streams can copy planes that do not lie as rows do");
  for (WindowCopies::Side* side : {&copy->to, &copy->from}) {
    if (side->kind == Kind::window || reach_host(*side, copy->reach(*side))) continue;
    return refuse(
        "outside of coloured memory it reaches only pinned memory (cuMemHostAlloc, "
        "cuMemHostRegister)");
  }
  return means_.kernels.copy_by(use, copy->to, copy->from, {copy->width, copy->height});
}

CallAnswer NodeCalls::make_fill(const CuFillNode& params, const WindowCopies::Use& use) const {
  const std::uint64_t element = params.element_bytes;
  if (element != 1 && element != 2 && element != 4) return cu_error_invalid_value;
  CopyCalls::Copy fill;
  fill.to = {WindowCopies::Side::Kind::device, params.target, params.pitch};
  fill.height = params.height;
  if (__builtin_mul_overflow(params.width, element, &fill.width)) return cu_error_invalid_value;
  if (!means_.copies.settle_target(fill)) return cu_error_invalid_value;
  if (fill.to.kind != WindowCopies::Side::Kind::window) return std::nullopt;
  if (params.target % element != 0 || (params.height > 1 && params.pitch % element != 0)) {
    return cu_error_invalid_value;
  }
  return means_.kernels.fill_by(use, fill.to, params.value, params.element_bytes,
                                {params.width, params.height});
}

CallAnswer NodeCalls::make(const Work& work, const WindowCopies::Use& use) const {
  const auto* copy = std::get_if<CuCopy3d>(&work);
  return copy != nullptr ? make_copy(*copy, use) : make_fill(std::get<CuFillNode>(work), use);
}

CallAnswer NodeCalls::add(const NodePlace& place, const Work& work) {
  if (place.node == nullptr) return cu_error_invalid_value;
  if (means_.api.cuGraphAddKernelNode_v2 == nullptr) {
    return refuse("it needs a driver of CUDA 12.0 or newer");
  }
  return make(work, [&](CuKernelNode kernel) {
    kernel.context = place.context;
    const CuResult code = means_.api.cuGraphAddKernelNode_v2(place.node, place.graph, place.after,
                                                             place.count, &kernel);
    if (code == cu_success) {
      const std::lock_guard lock(mutex_);
      nodes_.insert_or_assign(*place.node, Node{place.graph, work});
    }
    return code;
  });
}

template <class Params>
CallAnswer NodeCalls::add(const DriverCall& call) {
  const auto [node, graph, after, count, params, context] = call.parameters<AddNodeIn<Params>>();
  if (params == nullptr) return std::nullopt;
  return add({node, graph, after, count, context}, *params);
}

// As the function that adds nodes of this type alone.
template <class Parameters>
CallAnswer NodeCalls::add_any(const DriverCall& call) {
  const auto given = call.parameters<Parameters>();
  const CuAnyNode* params = given.params;
  if (params == nullptr) return std::nullopt;
  const char* edges = nullptr;
  if constexpr (requires { given.edges; }) edges = given.edges;
  NodePlace place{given.node, given.graph, given.after, given.count, nullptr};
  switch (params->type) {
    case kernel_node:
      return means_.modules.judge_node(params->kernel.function, params->kernel.kernel,
                                       {params->kernel.arguments, params->kernel.extra});
    case copy_node:
      place.context = params->copy.context;
      if (says_more(edges, place.count)) return refuse("its edges say more than an order");
      return add(place, params->copy.params);
    case fill_node:
      place.context = params->fill.context;
      if (says_more(edges, place.count)) return refuse("its edges say more than an order");
      return add(place, params->fill.params);
    case host_node:
    case empty_node:
    case waiting_node:
    case recording_node:
      return std::nullopt;
    case child_node:
      return means_.locals.keep_order(call.name()) ? CallAnswer(cu_error_not_supported)
                                                   : std::nullopt;
    default:
      means_.tell(
          fmt::format("{} was refused: nodes of type {} are not known", call.name(), params->type));
      return cu_error_not_supported;
  }
}

CallAnswer NodeCalls::change(const Work& work, bool stands, const WindowCopies::Use& use) {
  const CallAnswer answer = make(work, [&](const CuKernelNode& kernel) {
    return stands ? use(kernel) : refuse("the node was made for memory outside of the share");
  });
  if (answer || !stands) return answer;
  return refuse("the node was made for memory of the share");
}

template <class Params>
CallAnswer NodeCalls::set(const DriverCall& call) {
  const auto given = call.parameters<NodeParams<const Params>>();
  const CuGraphNode node = given.node;
  const Params* params = given.params;
  if (params == nullptr) return std::nullopt;
  const auto known = find(node);
  return change(*params, known && std::holds_alternative<Params>(known->work),
                [&](const CuKernelNode& kernel) {
                  const CuResult code = means_.api.cuGraphKernelNodeSetParams_v2(node, &kernel);
                  if (code == cu_success) {
                    const std::lock_guard lock(mutex_);
                    nodes_.insert_or_assign(node, Node{known->graph, *params});
                  }
                  return code;
                });
}

template <class Params>
CallAnswer NodeCalls::set_launched(const DriverCall& call) {
  const auto given = call.parameters<LaunchedNodeParamsIn<Params>>();
  if (given.params == nullptr) return std::nullopt;
  const auto known = find(given.node);
  return change(*given.params, known && std::holds_alternative<Params>(known->work),
                [&](CuKernelNode kernel) {
                  kernel.context = given.context;
                  return means_.api.cuGraphExecKernelNodeSetParams_v2(given.executable, given.node,
                                                                      &kernel);
                });
}

template <class Params>
CallAnswer NodeCalls::get(const DriverCall& call) {
  const auto [node, params] = call.parameters<NodeParams<Params>>();
  const auto known = find(node);
  if (!known || !std::holds_alternative<Params>(known->work)) return std::nullopt;
  if (params == nullptr) return cu_error_invalid_value;
  *params = std::get<Params>(known->work);
  return cu_success;
}

CallAnswer NodeCalls::type(const DriverCall& call) {
  const auto [node, type] = call.parameters<GetNodeType>();
  const auto known = find(node);
  if (!known || type == nullptr) return std::nullopt;
  *type = std::holds_alternative<CuCopy3d>(known->work) ? copy_node : fill_node;
  return cu_success;
}

// The driver may give the handles to other nodes.
CallAnswer NodeCalls::destroy_graph(const DriverCall& call) {
  const std::lock_guard lock(mutex_);
  std::erase_if(nodes_, [graph = call.parameters<DestroyGraph>().graph](const auto& one) {
    return one.second.graph == graph;
  });
  return std::nullopt;
}

CallAnswer NodeCalls::destroy_node(const DriverCall& call) {
  if (means_.locals.keep_order(call.name())) return cu_error_not_supported;
  const std::lock_guard lock(mutex_);
  nodes_.erase(call.parameters<DestroyNode>().node);
  return std::nullopt;
}

}  // namespace demarc::cuda
