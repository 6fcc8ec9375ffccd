// The thread of a neighbour, and how far it is ahead of the GPU.
#include "gpu/launch_loop.hpp"

#include <algorithm>
#include <utility>

namespace demarc::study {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::uint64_t runs_ahead(double run_seconds, std::uint64_t most) {
  constexpr std::uint64_t least = 2;
  constexpr double ahead_seconds = 0.002;
  const double runs = ahead_seconds / std::max(run_seconds, 1e-9);
  return std::clamp(static_cast<std::uint64_t>(runs), least, most);
}

LaunchLoop::LaunchLoop(const cuda::Gpu& gpu, const cuda::Stream& stream, const LaneWork& work,
                       std::vector<cuda::Event> marks, LoopLimits limits, SecondsClock now)
    : gpu_(gpu),
      stream_(stream),
      work_(work),
      marks_(std::move(marks)),
      limits_(limits),
      now_(std::move(now)) {
  thread_ = std::thread([this] { loop(); });
}

Result<void> LaunchLoop::wait_for_first() {
  const double begun = now_();
  while (finished_ == 0 && !failed_) {
    if (now_() - begun > limits_.first_run_seconds) {
      return check_failed("an aggressor's first run did not end within {:g} s",
                          limits_.first_run_seconds);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return failed_ ? tl::unexpected(error_) : Result<void>{};
}

Result<double> LaunchLoop::finish() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  if (failed_) return tl::unexpected(error_);
  return rate_;
}

void LaunchLoop::loop() {
  const auto outcome = run();
  if (outcome) return;
  error_ = outcome.error();
  failed_ = true;
}

Result<bool> LaunchLoop::wait_mark(std::size_t i) {
  while (!stopping_) {
    const cuda::CuResult code = gpu_.api().cuEventQuery(marks_[i].handle());
    if (code == cuda::cu_success) return true;
    if (code != cuda::cu_error_not_ready) {
      DEMARC_CHECK(gpu_.check(code, "an aggressor's run"));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return false;
}

Result<void> LaunchLoop::run() {
  DEMARC_CHECK(gpu_.make_current());
  auto ended = keep_running();
  auto idle = stream_.wait(limits_.end);
  DEMARC_CHECK(ended);
  return idle;
}

Result<void> LaunchLoop::keep_running() {
  const double begun = now_();
  double last_ended = begun;
  std::uint64_t enqueued = 0;
  std::uint64_t ahead = runs_ahead(1, marks_.size());
  while (!stopping_) {
    if (enqueued - finished_ >= ahead) {
      DEMARC_TRY(const bool run_ended, wait_mark(finished_ % marks_.size()));
      if (!run_ended) break;
      const double now = now_();
      ahead = runs_ahead(now - std::exchange(last_ended, now), marks_.size());
      ++finished_;
      continue;
    }
    DEMARC_CHECK(work_.enqueue(stream_));
    DEMARC_CHECK(marks_[enqueued % marks_.size()].record(stream_));
    ++enqueued;
  }
  rate_ = static_cast<double>(finished_) / std::max(now_() - begun, 1e-9);
  return {};
}

}  // namespace demarc::study
