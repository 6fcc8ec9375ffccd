// Answers the functions of the driver that make, change and run graphs.
#include "calls/graph_calls.hpp"

#include "calls/own_calls.hpp"

namespace demarc::cuda {

std::span<const CallRow<GraphCalls>> GraphCalls::rows() {
  static constexpr CallRow<GraphCalls> table[] = {
      {"cuGraphLaunch", &GraphCalls::launch},
      {"cuStreamBeginCapture", &GraphCalls::begin_capture},
      {"cuStreamBeginCapture_v2", &GraphCalls::begin_capture},
      {"cuStreamBeginCaptureToGraph", &GraphCalls::begin_capture_into},
      {"cuStreamEndCapture", &GraphCalls::end_capture},
      {"cuGraphAddChildGraphNode", &GraphCalls::change_order},
      {"cuGraphExecChildGraphNodeSetParams", &GraphCalls::change_order},
      {"cuGraphRemoveDependencies", &GraphCalls::change_order},
      {"cuGraphRemoveDependencies_v2", &GraphCalls::change_order},
      {"cuGraphInstantiateWithFlags", &GraphCalls::instantiate},
      {"cuGraphInstantiateWithParams", &GraphCalls::instantiate_with},
      {"cuCtxDestroy", &GraphCalls::destroy_context},
      {"cuCtxDestroy_v2", &GraphCalls::destroy_context},
  };
  return table;
}

CallAnswer GraphCalls::launch(const DriverCall& call) {
  if (!locals_.are_in_graphs()) return std::nullopt;
  const OwnCalls own;
  const CuStream stream = meant_stream(call, call.argument<CuStream>(8));
  return locals_.launch_graph(
      stream, [&] { return api_.cuGraphLaunch(call.argument<CuGraphExec>(0), stream); });
}

CallAnswer GraphCalls::begin_capture(const DriverCall&) {
  locals_.capture_begins(LocalUsers::Into::new_graph);
  return std::nullopt;
}

// Two captures into one graph do not wait for each other.
CallAnswer GraphCalls::begin_capture_into(const DriverCall&) {
  locals_.capture_begins(LocalUsers::Into::graph_that_is);
  return std::nullopt;
}

CallAnswer GraphCalls::end_capture(const DriverCall& call) {
  if (!locals_.are_in_graphs()) return std::nullopt;
  const OwnCalls own;
  const CuStream stream = meant_stream(call, call.argument<CuStream>(0));
  return locals_.end_capture(
      stream, [&] { return api_.cuStreamEndCapture(stream, call.argument<CuGraph*>(8)); });
}

// It could leave two kernels with local variables without order between them.
CallAnswer GraphCalls::change_order(const DriverCall& call) {
  return locals_.keep_order(call.name()) ? CallAnswer(cu_error_not_supported) : std::nullopt;
}

// What kernels launch nobody waits for.
CallAnswer GraphCalls::judge_flags(unsigned long long flags) {
  constexpr unsigned long long device_launch = 4;  // CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
  if ((flags & device_launch) == 0) return std::nullopt;
  tell_(
      "a graph that kernels launch was refused, because nothing keeps it apart from other "
      "launches");
  return cu_error_not_supported;
}

CallAnswer GraphCalls::instantiate(const DriverCall& call) {
  return judge_flags(call.argument<unsigned long long>(16));
}

CallAnswer GraphCalls::instantiate_with(const DriverCall& call) {
  const auto* flags = call.argument<const unsigned long long*>(16);  // the first of the parameters
  return flags == nullptr ? std::nullopt : judge_flags(*flags);
}

CallAnswer GraphCalls::destroy_context(const DriverCall&) {
  if (!locals_.are_in_graphs()) return std::nullopt;
  const OwnCalls own;
  locals_.forget_context();
  return std::nullopt;
}

}  // namespace demarc::cuda
