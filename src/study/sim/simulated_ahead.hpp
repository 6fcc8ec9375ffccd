// Simulates cells of a study on threads of its own while the study goes through them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "demarc/base/parallel.hpp"
#include "demarc/base/result.hpp"

namespace demarc::study {

// One run of T(A, B), or of A alone on the whole GPU (parts = 1).
struct CellKey {
  std::string mode;
  std::uint32_t parts = 1;
  std::string victim;
  std::string aggressor;  // empty: idle
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes a defaulted comparison for a zero
  friend auto operator<=>(const CellKey&, const CellKey&) = default;
};

struct CellTimes {
  std::vector<double> ns;      // all samples, in order, with those of warm-up launches
  std::uint64_t launches = 0;  // runs of the victim that these samples are made of
  double aggressor_rate = 0;   // launches a second, all lanes
};

class SimulatedAhead {
 public:
  struct Job {
    CellKey key;
    std::function<Result<CellTimes>()> simulate;
  };
  SimulatedAhead(std::vector<Job> jobs, unsigned threads) {
    for (const Job& job : jobs) waiting_.insert(job.key);
    worker_ = std::thread([this, jobs = std::move(jobs), threads] {
      parallel_for(jobs.size(), threads, [&](std::size_t i) {
        if (stopped_) return;
        std::optional<Result<CellTimes>> times;
        std::exception_ptr failure;
        try {
          times = jobs[i].simulate();
        } catch (...) {
          failure = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        if (times) done_.insert_or_assign(jobs[i].key, *std::move(times));
        if (failure) failure_ = failure;
        ended_.notify_all();
      });
    });
  }
  SimulatedAhead(const SimulatedAhead&) = delete;
  SimulatedAhead& operator=(const SimulatedAhead&) = delete;
  // Cells that are being simulated end first.
  ~SimulatedAhead() {
    stopped_ = true;
    worker_.join();
  }

  // The times of a cell that the jobs have, once; nothing if they do not have it. Throws what a
  // simulation has thrown.
  std::optional<Result<CellTimes>> wait_for(const CellKey& key) {
    std::unique_lock lock(mutex_);
    if (waiting_.erase(key) == 0) return std::nullopt;
    ended_.wait(lock, [&] { return done_.contains(key) || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    return std::move(done_.extract(key).mapped());
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::set<CellKey> waiting_;  // cells that were not asked for yet
  std::map<CellKey, Result<CellTimes>> done_;
  std::exception_ptr failure_;
  std::atomic<bool> stopped_ = false;
  std::thread worker_;
};

}  // namespace demarc::study
