// Captures: streams whose launches become nodes of a graph, which wait for each other as the
// streams and their events say.
#include <algorithm>

#include "fake_told.hpp"

namespace demarc::fake {

CuResult capture_launch(FakeStream& stream, const FakeLaunch& launch) {
  if (stream.capture->broken) return cuda::cu_error_capture_invalidated;
  auto& nodes = stream.capture->graph.nodes;
  nodes.push_back({launch, stream.after});
  stream.after = {nodes.size() - 1};
  return cuda::cu_success;
}

// Its nodes, where the driver has one node for all of them.
CuResult capture_graph(FakeStream& stream, const FakeGraphExec& graph) {
  if (stream.capture->broken) return cuda::cu_error_capture_invalidated;
  auto& nodes = stream.capture->graph.nodes;
  const std::size_t first = nodes.size();
  const std::set<std::size_t> before = stream.after;
  for (const FakeNode& node : graph.nodes) {
    std::set<std::size_t> after = before;
    for (const std::size_t one : node.after) after.insert(first + one);
    nodes.push_back({node.launch, std::move(after)});
    stream.after.insert(nodes.size() - 1);
  }
  return cuda::cu_success;
}

CuResult capture_wait(FakeStream& stream, const FakeEvent& event) {
  const auto breaks = [](FakeCapture* capture, CuResult code) {
    if (capture != nullptr) capture->broken = true;
    return code;
  };
  if (stream.capturing() && stream.capture->broken) return cuda::cu_error_capture_invalidated;
  if (event.capture == nullptr) return breaks(stream.capture.get(), error_capture_isolation);
  if (event.capture->ended) return breaks(stream.capture.get(), error_captured_event);
  if (event.capture->broken) return cuda::cu_error_capture_invalidated;
  if (stream.capturing() && stream.capture != event.capture) {
    return breaks(stream.capture.get(), breaks(event.capture.get(), error_capture_merge));
  }
  stream.capture = event.capture;
  stream.after.insert(event.after.begin(), event.after.end());
  return cuda::cu_success;
}

namespace {

// Whether the nodes come before others, or are among them.
bool joined(const FakeGraph& graph, const std::set<std::size_t>& nodes,
            const std::set<std::size_t>& last) {
  std::set<std::size_t> seen = last;
  for (auto at = seen.rbegin(); at != seen.rend(); ++at) {
    const auto& before = graph.nodes[*at].after;
    seen.insert(before.begin(), before.end());
  }
  return std::includes(seen.begin(), seen.end(), nodes.begin(), nodes.end());
}

CuResult begin(FakeStream& stream) {
  if (stream.capturing()) return cuda::cu_error_not_supported;
  FakeGpu& gpu = FakeGpu::get();
  stream.capture = std::make_shared<FakeCapture>();
  stream.capture->id = ++gpu.captures_made;
  stream.capture->origin = &stream;
  gpu.captures.insert(stream.capture.get());
  return cuda::cu_success;
}

CuResult end(FakeStream& stream, cuda::CuGraph* graph) {
  FakeGpu& gpu = FakeGpu::get();
  *graph = nullptr;
  const std::shared_ptr<FakeCapture> capture = stream.capture;
  if (capture == nullptr) return error_invalid;
  if (capture->origin != &stream) {
    capture->broken = true;
    return error_capture_unmatched;
  }
  bool all_joined = true;
  const std::set<std::size_t> last = stream.after;
  const auto leave = [&](FakeStream& one) {
    if (one.capture != capture) return;
    all_joined = all_joined && joined(capture->graph, one.after, last);
    one.capture.reset();
    one.after.clear();
  };
  leave(stream);  // it may be one of a green context, which the card does not list
  leave(gpu.default_stream);
  for (FakeStream* one : gpu.streams) leave(*one);
  capture->ended = true;
  gpu.captures.erase(capture.get());
  if (capture->broken) return cuda::cu_error_capture_invalidated;
  if (!all_joined) return error_capture_unjoined;
  ++gpu.others_alive;
  *graph = reinterpret_cast<cuda::CuGraph>(new FakeGraph(std::move(capture->graph)));
  return cuda::cu_success;
}

CuResult status_of(const FakeStream& stream, int* status, unsigned long long* id) {
  *status = 0;
  if (!stream.capturing()) return cuda::cu_success;
  *status = stream.capture->broken ? 2 : 1;
  if (id != nullptr && *status == 1) *id = stream.capture->id;
  return cuda::cu_success;
}

}  // namespace
}  // namespace demarc::fake

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE CuResult cuStreamBeginCapture_v2(CuStream stream, int mode) {
  return told(
      539, "cuStreamBeginCapture_v2", [&] { return begin(*stream_of(stream)); }, stream, mode);
}
FAKE CuResult cuStreamIsCapturing(CuStream stream, int* status) {
  const auto lock = locked();
  return status_of(*stream_of(stream), status, nullptr);
}
FAKE CuResult cuStreamGetCaptureInfo(CuStream stream, int* status, unsigned long long* id) {
  const auto lock = locked();
  return status_of(*stream_of(stream), status, id);
}
FAKE CuResult cuStreamEndCapture(CuStream stream, CuGraph* graph) {
  return told(
      497, "cuStreamEndCapture", [&] { return end(*stream_of(stream), graph); }, stream, graph);
}
