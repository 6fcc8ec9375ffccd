// Finds the order in which a launch of a kernel with local variables has its place.
#include "calls/local_users.hpp"

#include "calls/relaxed_capture.hpp"
#include "demarc/base/result.hpp"

namespace demarc::cuda {

// Fails where a kernel with local variables may not be given to the stream.
CuResult LocalUsers::find_capture(CuStream stream, StreamCapture& capture) {
  if (const CuResult code = StreamCapture::find(api_, stream, capture); code != cu_success) {
    return code;
  }
  if (capture.state == StreamCapture::State::broken) return cu_error_capture_invalidated;
  if (capture.state == StreamCapture::State::nameless) {
    tell_(
        "a kernel with local variables cannot be captured, because this driver does not tell "
        "captures apart");
    return cu_error_not_supported;
  }
  if (capture.state == StreamCapture::State::active && into_graphs_.load()) {
    tell_(
        "a kernel with local variables cannot be captured, because the program has captured into "
        "an existing graph (cuStreamBeginCaptureToGraph)");
    return cu_error_not_supported;
  }
  return cu_success;
}

void LocalUsers::join(ModuleOrder& module) {
  const std::scoped_lock both(module.mutex, mutex_);
  order_.join(module.order);  // which is empty from then on
  module.captured.store(true);
  in_graphs_.store(true);
}

std::unique_lock<std::mutex> LocalUsers::locked(ModuleOrder& module) {
  {
    std::unique_lock lock(module.mutex);
    if (!module.captured.load()) return lock;
  }
  return std::unique_lock(mutex_);
}

CuResult LocalUsers::launch(ModuleOrder& module, CuStream stream, const MakeRoom& make_room,
                            const Work& work) {
  const RelaxedStreamCapture relaxed(api_);
  StreamCapture capture;
  CuResult code = find_capture(stream, capture);
  if (code != cu_success) return code;
  const bool captured = capture.state == StreamCapture::State::active;
  if (captured) join(module);
  const auto lock = locked(module);
  LaunchOrder& order = module.captured.load() ? order_ : module.order;
  code = make_room([&] { return order.wait(api_); });
  if (code != cu_success) return code;
  return (captured ? captures_[capture.id] : order).run(api_, stream, work);
}

CuResult LocalUsers::launch_graph(CuStream stream, const Work& work) {
  const RelaxedStreamCapture relaxed(api_);
  StreamCapture capture;
  const CuResult code = find_capture(stream, capture);
  if (code != cu_success) return code;
  const std::lock_guard lock(mutex_);
  LaunchOrder& order =
      capture.state == StreamCapture::State::active ? captures_[capture.id] : order_;
  return order.run(api_, stream, work);
}

bool LocalUsers::keep_order(std::string_view function) const {
  if (!in_graphs_.load()) return false;
  tell_(
      fmt::format("{} was refused, because kernels with local variables were captured and their "
                  "graphs must keep the order of the capture",
                  function));
  return true;
}

void LocalUsers::capture_begins(Into into) {
  any_capture_.store(true);
  if (into == Into::graph_that_is) into_graphs_.store(true);
}

// The driver may refuse to end it: then nodes that follow still have to wait.
CuResult LocalUsers::end_capture(CuStream stream, const Work& work) {
  StreamCapture before;
  StreamCapture after;
  const std::lock_guard lock(mutex_);
  const bool known = StreamCapture::find(api_, stream, before) == cu_success;
  const CuResult code = work();
  if (!known || !captures_.contains(before.id) ||
      StreamCapture::find(api_, stream, after) != cu_success ||
      after.state != StreamCapture::State::none) {
    return code;
  }
  if (auto order = captures_.extract(before.id)) order.mapped().forget(api_);
  return code;
}

void LocalUsers::forget_context() {
  const std::lock_guard lock(mutex_);
  static_cast<void>(order_.wait(api_));  // what a broken context does not end ends with it
  order_.forget(api_);
}

}  // namespace demarc::cuda
