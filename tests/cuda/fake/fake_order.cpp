// Which runs of a kernel had ended for sure when another one began. Kernels of the stand-in run at
// once, one after the other: a wait that is missing shows here alone.
#include "fake_state.hpp"

namespace demarc::fake {

void note_run(FakeGpu& gpu, const FakeLaunch& launch, FakeRuns& done) {
  done.insert(gpu.known_done.begin(), gpu.known_done.end());
  if (launch.function->name != gpu.watched) return;
  gpu.runs.push_back(done);
  done.insert(gpu.runs.size() - 1);
}

void note_wait(FakeGpu& gpu, const FakeRuns& done) {
  gpu.known_done.insert(done.begin(), done.end());
}

void note_wait_for_all(FakeGpu& gpu) {
  for (std::uint64_t run = 0; run < gpu.runs.size(); ++run) gpu.known_done.insert(run);
}

}  // namespace demarc::fake

using namespace demarc::fake;  // NOLINT: the exported symbols below are not in a namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE void fake_watch_kernel(const char* name) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  gpu.watched = name;
  gpu.runs.clear();
  gpu.known_done.clear();
  gpu.default_stream.done.clear();
  for (FakeStream* stream : gpu.streams) stream->done.clear();
  for (const auto& [handle, event] : gpu.events) event->done.clear();
}
FAKE std::uint64_t fake_watched_runs() {
  const auto lock = locked();
  return FakeGpu::get().runs.size();
}
FAKE std::uint64_t fake_unordered_runs() {
  const auto lock = locked();
  const auto& runs = FakeGpu::get().runs;
  std::uint64_t pairs = 0;
  for (std::size_t later = 0; later < runs.size(); ++later) pairs += later - runs[later].size();
  return pairs;
}
