// What a neighbour does: a lane's work again and again, in a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "demarc/driver/stream.hpp"
#include "gpu/resident_launch.hpp"

namespace demarc::study {

// Seconds since some moment. Called from several threads.
using SecondsClock = std::function<double()>;
[[nodiscard]] double steady_seconds();

// How many runs wait for the GPU: as many as take 2 ms where one takes `run_seconds`, two at least
// and `most` at most.
[[nodiscard]] std::uint64_t runs_ahead(double run_seconds, std::uint64_t most);

// How long a loop waits. A run that never ends must not keep who stops it.
struct LoopLimits {
  double first_run_seconds = 60;
  std::chrono::milliseconds end{60000};  // from being told to stop until all runs have ended
};

// Runs the work until told to stop. A few runs are enqueued ahead of the GPU, so that it does not
// wait for the host. Who stops the loop waits for them.
class LaunchLoop {
 public:
  // Begins at once. `marks`: events, one for each run that may wait for the GPU.
  LaunchLoop(const cuda::Gpu& gpu, const cuda::Stream& stream, const LaneWork& work,
             std::vector<cuda::Event> marks, LoopLimits limits = {},
             SecondsClock now = steady_seconds);
  ~LaunchLoop() { (void)finish(); }
  LaunchLoop(const LaunchLoop&) = delete;
  LaunchLoop& operator=(const LaunchLoop&) = delete;

  // Waits until the first run has ended: from then on the part is busy.
  [[nodiscard]] Result<void> wait_for_first();

  // Runs a second that ended until now.
  [[nodiscard]] Result<double> finish();

 private:
  void loop();
  Result<void> run();
  Result<void> keep_running();
  // False: told to stop before that run had ended.
  Result<bool> wait_mark(std::size_t i);

  const cuda::Gpu& gpu_;
  const cuda::Stream& stream_;
  const LaneWork& work_;
  std::vector<cuda::Event> marks_;
  LoopLimits limits_;
  SecondsClock now_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> finished_{0};
  double rate_ = 0;
  Error error_;
  std::thread thread_;
};

}  // namespace demarc::study
