// Answers the functions of the driver that make, change and run graphs.
#include "calls/graph_calls.hpp"

#include "calls/own_calls.hpp"

namespace demarc::cuda {

std::span<const CallRow<GraphCalls>> GraphCalls::rows() {
  static constexpr CallRow<GraphCalls> table[] = {
      {DriverFunction::cuGraphLaunch, &GraphCalls::launch},
      {DriverFunction::cuStreamBeginCapture, &GraphCalls::begin_capture},
      {DriverFunction::cuStreamBeginCaptureToGraph, &GraphCalls::begin_capture_into},
      {DriverFunction::cuStreamEndCapture, &GraphCalls::end_capture},
      {DriverFunction::cuGraphAddChildGraphNode, &GraphCalls::change_order},
      {DriverFunction::cuGraphExecChildGraphNodeSetParams, &GraphCalls::change_order},
      {DriverFunction::cuGraphRemoveDependencies, &GraphCalls::change_order},
      {DriverFunction::cuGraphInstantiateWithFlags, &GraphCalls::instantiate},
      {DriverFunction::cuGraphInstantiateWithParams, &GraphCalls::instantiate_with},
      {DriverFunction::cuCtxDestroy, &GraphCalls::destroy_context},
  };
  return table;
}

CallAnswer GraphCalls::launch(const DriverCall& call) {
  if (!locals_.are_in_graphs()) return std::nullopt;
  const OwnCalls own;
  const auto given = call.parameters<LaunchGraph>();
  const CuStream stream = stream_of(call, given);
  return locals_.launch_graph(stream, [&] { return api_.cuGraphLaunch(given.executable, stream); });
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
  const auto given = call.parameters<EndCapture>();
  const CuStream stream = stream_of(call, given);
  return locals_.end_capture(stream, [&] { return api_.cuStreamEndCapture(stream, given.graph); });
}

// It could leave two kernels with local variables without order between them.
CallAnswer GraphCalls::change_order(const DriverCall& call) {
  return locals_.keep_order(call.name()) ? CallAnswer(cu_error_not_supported) : std::nullopt;
}

// The host does not wait for what kernels launch.
CallAnswer GraphCalls::judge_flags(unsigned long long flags) {
  constexpr unsigned long long device_launch = 4;  // CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
  if ((flags & device_launch) == 0) return std::nullopt;
  tell_(
      "a graph that kernels launch was refused, because nothing keeps it apart from other "
      "launches");
  return cu_error_not_supported;
}

CallAnswer GraphCalls::instantiate(const DriverCall& call) {
  return judge_flags(call.parameters<InstantiateGraph>().flags);
}

CallAnswer GraphCalls::instantiate_with(const DriverCall& call) {
  const auto* how = call.parameters<InstantiateGraphWith>().how;
  return how == nullptr ? std::nullopt : judge_flags(how->flags);
}

CallAnswer GraphCalls::destroy_context(const DriverCall&) {
  if (!locals_.are_in_graphs()) return std::nullopt;
  const OwnCalls own;
  locals_.forget_context();
  return std::nullopt;
}

}  // namespace demarc::cuda
