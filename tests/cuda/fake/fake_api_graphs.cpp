// The driver's symbols for graphs, and for kernels that are added to them by hand.
#include <algorithm>

#include "fake_told.hpp"

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {
// Functions and kernels of libraries, as fake_api_launch.cpp has them.
FakeLaunch launch_of(const CuKernelNode& params) {
  constexpr std::uintptr_t kernel_mark = 1;
  const auto number = params.function != nullptr
                          ? reinterpret_cast<std::uintptr_t>(params.function)
                          : reinterpret_cast<std::uintptr_t>(params.kernel) & ~kernel_mark;
  FakeLaunch launch;
  launch.function = reinterpret_cast<FakeFunction*>(number);  // NOLINT(performance-no-int-to-ptr)
  std::copy(params.grid, params.grid + 3, launch.grid);
  std::copy(params.block, params.block + 3, launch.block);
  launch.shared = params.shared_bytes;
  launch.arguments = copy_arguments(*launch.function, params.arguments);
  return launch;
}
CuResult add(CuGraphNode* node, CuGraph to, const CuGraphNode* after, std::size_t count,
             const CuKernelNode& params) {
  auto& graph = *reinterpret_cast<FakeGraph*>(to);
  FakeNode made{launch_of(params), {}};
  for (std::size_t i = 0; i < count; ++i) {
    made.after.insert(reinterpret_cast<FakeNodeHandle*>(after[i])->index);
  }
  graph.nodes.push_back(std::move(made));
  graph.handles.push_back(std::make_unique<FakeNodeHandle>());
  *graph.handles.back() = {&graph, graph.nodes.size() - 1};
  *node = reinterpret_cast<CuGraphNode>(graph.handles.back().get());
  return cu_success;
}
}  // namespace

FAKE CuResult cuGraphCreate(CuGraph* graph, unsigned flags) {
  if (flags != 0) return error_invalid;
  const auto lock = locked();
  ++FakeGpu::get().others_alive;
  *graph = reinterpret_cast<CuGraph>(new FakeGraph);
  return cu_success;
}
FAKE CuResult cuGraphAddKernelNode_v2(CuGraphNode* node, CuGraph graph, const CuGraphNode* after,
                                      std::size_t count, const CuKernelNode* params) {
  return told(
      689, "cuGraphAddKernelNode_v2", [&] { return add(node, graph, after, count, *params); }, node,
      graph, after, count, params);
}
FAKE CuResult cuGraphKernelNodeSetParams_v2(CuGraphNode node, const CuKernelNode* params) {
  return told(
      691, "cuGraphKernelNodeSetParams_v2",
      [&] {
        const auto& handle = *reinterpret_cast<FakeNodeHandle*>(node);
        handle.graph->nodes[handle.index].launch = launch_of(*params);
        return cu_success;
      },
      node, params);
}
FAKE CuResult cuGraphExecKernelNodeSetParams_v2(CuGraphExec executable, CuGraphNode node,
                                                const CuKernelNode* params) {
  return told(
      692, "cuGraphExecKernelNodeSetParams_v2",
      [&] {
        const auto& handle = *reinterpret_cast<FakeNodeHandle*>(node);
        reinterpret_cast<FakeGraphExec*>(executable)->nodes[handle.index].launch =
            launch_of(*params);
        return cu_success;
      },
      executable, node, params);
}
FAKE CuResult cuGraphInstantiateWithFlags(CuGraphExec* executable, CuGraph graph,
                                          unsigned long long flags) {
  return told(
      643, "cuGraphInstantiateWithFlags",
      [&] {
        if (flags != 0) return error_invalid;
        ++FakeGpu::get().others_alive;
        auto* made = new FakeGraphExec;
        made->nodes = reinterpret_cast<FakeGraph*>(graph)->nodes;
        *executable = reinterpret_cast<CuGraphExec>(made);
        return cu_success;
      },
      executable, graph, flags);
}
struct FakeInstantiation {
  std::uint64_t flags;
  CuStream upload_stream;
};
FAKE CuResult cuGraphInstantiateWithParams(CuGraphExec* executable, CuGraph graph,
                                           FakeInstantiation* how) {
  constexpr std::uint64_t with_upload = 2;
  return told(
      656, "cuGraphInstantiateWithParams",
      [&] {
        if ((how->flags & ~with_upload) != 0) return error_invalid;
        ++FakeGpu::get().others_alive;
        auto* made = new FakeGraphExec;
        made->nodes = reinterpret_cast<FakeGraph*>(graph)->nodes;
        if (how->flags == with_upload) upload_graph(stream_of(how->upload_stream), *made);
        *executable = reinterpret_cast<CuGraphExec>(made);
        return cu_success;
      },
      executable, graph, how);
}
FAKE CuResult cuGraphLaunch(CuGraphExec executable, CuStream stream) {
  return told(
      514, "cuGraphLaunch",
      [&] {
        return launch_graph(stream_of(stream), *reinterpret_cast<FakeGraphExec*>(executable));
      },
      executable, stream);
}
FAKE CuResult cuGraphUpload(CuGraphExec executable, CuStream stream) {
  return told(
      580, "cuGraphUpload",
      [&] {
        upload_graph(stream_of(stream), *reinterpret_cast<FakeGraphExec*>(executable));
        return cu_success;
      },
      executable, stream);
}
FAKE CuResult cuGraphExecDestroy(CuGraphExec executable) {
  const auto lock = locked();
  function_callback(FakeGpu::get(), 516, &executable, false);
  --FakeGpu::get().others_alive;
  delete reinterpret_cast<FakeGraphExec*>(executable);
  function_callback(FakeGpu::get(), 516, &executable, true);
  return cu_success;
}
FAKE CuResult cuGraphDestroy(CuGraph graph) {
  return told(
      517, "cuGraphDestroy",
      [&] {
        --FakeGpu::get().others_alive;
        delete reinterpret_cast<FakeGraph*>(graph);
        return cu_success;
      },
      graph);
}
