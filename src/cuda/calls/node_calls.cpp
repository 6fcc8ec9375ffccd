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

// CUgraphNodeParams: a type, and behind it the parameters of that type.
template <class T>
T params_at(const char* params, std::size_t offset) {
  T value;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a handle, which is a pointer
  std::memcpy(&value, params + offset, sizeof(T));
  return value;
}

// Of an edge that is more than an order.
bool says_more(const char* edges, std::size_t count) {
  constexpr std::size_t edge_bytes = 8;  // CUgraphEdgeData
  if (edges == nullptr) return false;
  return std::any_of(edges, edges + count * edge_bytes, [](char byte) { return byte != 0; });
}

}  // namespace

std::span<const CallRow<NodeCalls>> NodeCalls::rows() {
  static constexpr CallRow<NodeCalls> table[] = {
      {"cuGraphAddMemcpyNode", &NodeCalls::add<CuCopy3d>},
      {"cuGraphAddMemsetNode", &NodeCalls::add<CuFillNode>},
      {"cuGraphAddNode", &NodeCalls::add_any},
      {"cuGraphAddNode_v2", &NodeCalls::add_any},
      {"cuGraphMemcpyNodeSetParams", &NodeCalls::set<CuCopy3d>},
      {"cuGraphMemsetNodeSetParams", &NodeCalls::set<CuFillNode>},
      {"cuGraphExecMemcpyNodeSetParams", &NodeCalls::set_launched<CuCopy3d>},
      {"cuGraphExecMemsetNodeSetParams", &NodeCalls::set_launched<CuFillNode>},
      {"cuGraphMemcpyNodeGetParams", &NodeCalls::get<CuCopy3d>},
      {"cuGraphMemsetNodeGetParams", &NodeCalls::get<CuFillNode>},
      {"cuGraphNodeGetType", &NodeCalls::type},
      {"cuGraphDestroy", &NodeCalls::destroy_graph},
      {"cuGraphDestroyNode", &NodeCalls::destroy_node},
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
bool NodeCalls::reach_host(WindowCopies::Place& place, std::uint64_t bytes) const {
  if (place.kind == WindowCopies::Place::Kind::device) return false;
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
  using Kind = WindowCopies::Place::Kind;
  auto copy = CopyCalls::read(params);
  if (!copy) return cu_error_not_supported;
  if (!means_.copies.settle(*copy)) return cu_error_invalid_value;
  if (copy->to.kind != Kind::window && copy->from.kind != Kind::window) return std::nullopt;
  if (!copy->flatten()) return refuse("only streams can copy planes that do not lie as rows do");
  for (WindowCopies::Place* side : {&copy->to, &copy->from}) {
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
  fill.to = {WindowCopies::Place::Kind::device, params.target, params.pitch};
  fill.height = params.height;
  if (__builtin_mul_overflow(params.width, element, &fill.width)) return cu_error_invalid_value;
  if (!means_.copies.settle_target(fill)) return cu_error_invalid_value;
  if (fill.to.kind != WindowCopies::Place::Kind::window) return std::nullopt;
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

CallAnswer NodeCalls::add(const Place& place, const Work& work) {
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
  const auto* params = call.argument<const Params*>(32);
  if (params == nullptr) return std::nullopt;
  return add({call.argument<CuGraphNode*>(0), call.argument<CuGraph>(8),
              call.argument<const CuGraphNode*>(16), call.argument<std::size_t>(24),
              call.argument<CuContext>(40)},
             *params);
}

// As the function that adds nodes of this type alone.
CallAnswer NodeCalls::add_any(const DriverCall& call) {
  const bool second = call.versioned_name().ends_with("_v2");
  const auto* params = call.argument<const char*>(second ? 40 : 32);
  if (params == nullptr) return std::nullopt;
  const auto* edges = second ? call.argument<const char*>(24) : nullptr;
  Place place{call.argument<CuGraphNode*>(0), call.argument<CuGraph>(8),
              call.argument<const CuGraphNode*>(16), call.argument<std::size_t>(second ? 32 : 24),
              nullptr};
  switch (params_at<int>(params, 0)) {
    case kernel_node:
      return means_.modules.judge_node(
          params_at<CuFunction>(params, 16), params_at<CuKernel>(params, 72),
          {params_at<void**>(params, 56), params_at<void**>(params, 64)});
    case copy_node:
      place.context = params_at<CuContext>(params, 24);
      if (says_more(edges, place.count)) return refuse("its edges say more than an order");
      return add(place, params_at<CuCopy3d>(params, 32));
    case fill_node:
      place.context = params_at<CuContext>(params, 56);
      if (says_more(edges, place.count)) return refuse("its edges say more than an order");
      return add(place, params_at<CuFillNode>(params, 16));
    case host_node:
    case empty_node:
    case waiting_node:
    case recording_node:
      return std::nullopt;
    case child_node:
      return means_.locals.keep_order(call.name()) ? CallAnswer(cu_error_not_supported)
                                                   : std::nullopt;
    default:
      means_.tell(fmt::format("{} was refused: nodes of type {} are not known", call.name(),
                              params_at<int>(params, 0)));
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
  const auto node = call.argument<CuGraphNode>(0);
  const auto* params = call.argument<const Params*>(8);
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
  const auto node = call.argument<CuGraphNode>(8);
  const auto* params = call.argument<const Params*>(16);
  if (params == nullptr) return std::nullopt;
  const auto known = find(node);
  return change(*params, known && std::holds_alternative<Params>(known->work),
                [&](CuKernelNode kernel) {
                  kernel.context = call.argument<CuContext>(24);
                  return means_.api.cuGraphExecKernelNodeSetParams_v2(call.argument<CuGraphExec>(0),
                                                                      node, &kernel);
                });
}

template <class Params>
CallAnswer NodeCalls::get(const DriverCall& call) {
  auto* params = call.argument<Params*>(8);
  const auto known = find(call.argument<CuGraphNode>(0));
  if (!known || !std::holds_alternative<Params>(known->work)) return std::nullopt;
  if (params == nullptr) return cu_error_invalid_value;
  *params = std::get<Params>(known->work);
  return cu_success;
}

CallAnswer NodeCalls::type(const DriverCall& call) {
  auto* type = call.argument<int*>(8);
  const auto known = find(call.argument<CuGraphNode>(0));
  if (!known || type == nullptr) return std::nullopt;
  *type = std::holds_alternative<CuCopy3d>(known->work) ? copy_node : fill_node;
  return cu_success;
}

// The driver may give the handles to other nodes.
CallAnswer NodeCalls::destroy_graph(const DriverCall& call) {
  const std::lock_guard lock(mutex_);
  std::erase_if(nodes_, [graph = call.argument<CuGraph>(0)](const auto& one) {
    return one.second.graph == graph;
  });
  return std::nullopt;
}

CallAnswer NodeCalls::destroy_node(const DriverCall& call) {
  if (means_.locals.keep_order(call.name())) return cu_error_not_supported;
  const std::lock_guard lock(mutex_);
  nodes_.erase(call.argument<CuGraphNode>(0));
  return std::nullopt;
}

}  // namespace demarc::cuda
