// The driver's symbols for streams and events.
#include <algorithm>

#include "fake_state.hpp"

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE CuResult cuStreamCreateWithPriority(CuStream* stream, unsigned, int priority) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  FakeStream* made = nullptr;
  if (gpu.destroyed.empty()) {
    made = new FakeStream;
    made->number = gpu.streams_made++;
    clear_stream_field(*made);
  } else {
    made = gpu.destroyed.back();
    gpu.destroyed.pop_back();
  }
  made->priority = std::clamp(priority, -5, 0);  // as an H200 does
  gpu.streams.insert(made);
  *stream = reinterpret_cast<CuStream>(made);
  return cu_success;
}
FAKE CuResult cuStreamGetPriority(CuStream stream, int* priority) {
  const auto lock = locked();
  *priority = stream_of(stream)->priority;
  return cu_success;
}
FAKE CuResult cuStreamDestroy_v2(CuStream stream) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  function_callback(gpu, 326, &stream, false);
  FakeStream* gone = stream_of(stream);
  gpu.streams.erase(gone);
  gpu.finished(stream);
  gone->hangs = false;
  if (gone->capturing()) gone->capture->broken = true;
  gone->capture.reset();
  gone->after.clear();
  gone->done.clear();
  gone->green = nullptr;
  gone->domains = {0, 1};
  gpu.destroyed.push_back(gone);
  function_callback(gpu, 326, &stream, true);
  return cu_success;
}
FAKE CuResult cuStreamQuery(CuStream stream) {
  return on_card([&](FakeGpu& gpu) {
    FakeStream& asked = *stream_of(stream);
    if (asked.capturing()) {
      asked.capture->broken = true;
      return error_capture_unsupported;
    }
    if (asked.hangs) return cu_error_not_ready;
    settle_holds(gpu);
    if (gpu.now_ns < asked.busy_until_ns) {
      gpu.now_ns = asked.busy_until_ns;
      return cu_error_not_ready;
    }
    gpu.finished(stream);
    note_wait(gpu, asked.done);
    return cu_success;
  });
}
FAKE CuResult cuStreamSynchronize(CuStream stream) {
  CuResult code = cuStreamQuery(stream);
  while (code == cu_error_not_ready && !stream_of(stream)->hangs) code = cuStreamQuery(stream);
  return code == cu_error_not_ready ? error_launch_failed : code;
}
FAKE CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned flags) {
  if (flags != 0) return error_invalid;
  const auto lock = locked();
  FakeStream& waiting = *stream_of(stream);
  const auto& awaited = *reinterpret_cast<FakeEvent*>(event);
  if (waiting.capturing() || awaited.capture != nullptr) return capture_wait(waiting, awaited);
  waiting.busy_until_ns = std::max(waiting.busy_until_ns, awaited.ns);
  waiting.done.insert(awaited.done.begin(), awaited.done.end());
  return cu_success;
}
FAKE CuResult cuEventCreate(CuEvent* event, unsigned flags) {
  if (flags != 0 && flags != cu_event_disable_timing) return error_invalid;
  const auto lock = locked();
  ++FakeGpu::get().others_alive;
  auto made = std::make_unique<FakeEvent>();
  *event = reinterpret_cast<CuEvent>(made.get());
  FakeGpu::get().events[*event] = std::move(made);
  return cu_success;
}
FAKE CuResult cuEventDestroy_v2(CuEvent event) {
  const auto lock = locked();
  --FakeGpu::get().others_alive;
  FakeGpu::get().events.erase(event);
  return cu_success;
}
FAKE CuResult cuEventRecord(CuEvent event, CuStream stream) {
  return on_card([&](FakeGpu& gpu) {
    settle_holds(gpu);
    const FakeStream& recorded = *stream_of(stream);
    if (recorded.capturing() && recorded.capture->broken) return cu_error_capture_invalidated;
    auto& made = *reinterpret_cast<FakeEvent*>(event);
    made.ns = std::max(gpu.now_ns, recorded.busy_until_ns);
    made.done = recorded.done;
    made.capture = recorded.capture;
    made.after = recorded.after;
    return cu_success;
  });
}
// Coarser than the driver's: all work is done.
FAKE CuResult cuEventQuery(CuEvent event) {
  return on_card([event](FakeGpu& gpu) {
    const auto& asked = *reinterpret_cast<FakeEvent*>(event);
    if (asked.capture != nullptr) return error_captured_event;
    gpu.now_ns = std::max(gpu.now_ns, asked.ns);
    gpu.unfinished.clear();
    note_wait(gpu, asked.done);
    return cu_success;
  });
}
FAKE CuResult cuEventSynchronize(CuEvent event) {
  return cuEventQuery(event);
}
FAKE CuResult cuEventElapsedTime(float* milliseconds, CuEvent begin, CuEvent end) {
  return on_card([&](FakeGpu& gpu) {
    if (reinterpret_cast<FakeEvent*>(end)->ns > gpu.now_ns) return cu_error_not_ready;
    const std::uint64_t ns =
        reinterpret_cast<FakeEvent*>(end)->ns - reinterpret_cast<FakeEvent*>(begin)->ns;
    *milliseconds = static_cast<float>(static_cast<double>(ns) / 1e6);
    return cu_success;
  });
}

FAKE CuResult cuStreamSetAttribute(CuStream stream, int attribute,
                                   const CuLaunchAttributeValue* value) {
  const auto lock = locked();
  const FakeConfig& config = FakeGpu::get().config;
  if (attribute != CuLaunchAttribute::sync_domain_map) return cu_error_invalid_value;
  if (value->domains[0] >= config.sync_domains || value->domains[1] >= config.sync_domains) {
    return cu_error_invalid_value;
  }
  if (!config.forgets_domains) stream_of(stream)->domains = {value->domains[0], value->domains[1]};
  return cu_success;
}
FAKE CuResult cuStreamGetAttribute(CuStream stream, int attribute, CuLaunchAttributeValue* value) {
  const auto lock = locked();
  if (attribute != CuLaunchAttribute::sync_domain_map) return cu_error_invalid_value;
  std::copy_n(stream_of(stream)->domains.begin(), 2, value->domains);
  return cu_success;
}
