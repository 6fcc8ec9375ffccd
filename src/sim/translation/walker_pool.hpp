// A page-table walker unit (GMMU or IOMMU): a number of walkers, a FIFO queue in front of them.
#pragma once

#include <cstdint>
#include <deque>

#include "demarc/sim/event_queue.hpp"

namespace demarc::sim::translation {

struct WalkRequest {
  std::uint32_t gpu = 0;
  std::uint32_t page = 0;
};

class WalkerPool {
 public:
  WalkerPool(std::uint32_t walkers, std::uint32_t latency) : walkers_(walkers), latency_(latency) {}

  // Queues a request. At most one walk starts a cycle.
  void arrive(const WalkRequest& request, Cycles now) { queue_.push_back({request, now}); }
  // Starts the next walk if a walker is free; returns true, the request and when it ends.
  bool start(Cycles now, WalkRequest& request, Cycles& end) {
    if (queue_.empty() || busy_ == walkers_) return false;
    const Cycles begin = now > next_start_ ? now : next_start_;
    request = queue_.front().request;
    queue_wait_ += begin - queue_.front().arrived;
    queue_.pop_front();
    ++busy_;
    ++walks_;
    busy_cycles_ += latency_;
    next_start_ = begin + 1;
    end = begin + latency_;
    return true;
  }
  void finish() { --busy_; }

  [[nodiscard]] std::uint64_t walks() const { return walks_; }
  [[nodiscard]] std::uint64_t queue_wait() const { return queue_wait_; }
  [[nodiscard]] std::size_t queued() const { return queue_.size(); }
  [[nodiscard]] std::uint32_t busy() const { return busy_; }
  // Share of walker time used in `cycles`.
  [[nodiscard]] double utilisation(Cycles cycles) const {
    return cycles == 0
               ? 0.0
               : static_cast<double>(busy_cycles_) / (static_cast<double>(cycles) * walkers_);
  }

 private:
  struct Waiting {
    WalkRequest request;
    Cycles arrived;
  };
  std::uint32_t walkers_;
  std::uint32_t latency_;
  std::deque<Waiting> queue_;
  std::uint32_t busy_ = 0;
  Cycles next_start_ = 0;
  std::uint64_t walks_ = 0;
  std::uint64_t busy_cycles_ = 0;
  std::uint64_t queue_wait_ = 0;
};

}  // namespace demarc::sim::translation
