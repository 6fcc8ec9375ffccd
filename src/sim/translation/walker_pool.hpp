// A page-table walker unit (GMMU or IOMMU): a number of walkers, a FIFO queue in front of them.
#pragma once

#include <cstdint>
#include <deque>

#include "demarc/sim/translation/places.hpp"

namespace demarc::sim::translation {

struct WalkRequest {
  GpuIndex gpu;
  PageNumber page;
};

class WalkerPool {
 public:
  WalkerPool(std::uint32_t walkers, Cycles latency) : walkers_(walkers), latency_(latency) {}

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
    next_start_ = begin + Cycles(1);
    end = begin + latency_;
    return true;
  }
  void finish() { --busy_; }

  [[nodiscard]] std::uint64_t walks() const { return walks_; }
  [[nodiscard]] Cycles queue_wait() const { return queue_wait_; }
  [[nodiscard]] std::size_t queued() const { return queue_.size(); }
  [[nodiscard]] std::uint32_t busy() const { return busy_; }
  // Share of walker time used in `cycles`.
  [[nodiscard]] double utilisation(Cycles cycles) const {
    if (cycles == Cycles()) return 0;
    return static_cast<double>(busy_cycles_.raw()) / (static_cast<double>(cycles.raw()) * walkers_);
  }

 private:
  struct Waiting {
    WalkRequest request;
    Cycles arrived;
  };
  std::uint32_t walkers_;
  Cycles latency_;
  std::deque<Waiting> queue_;
  std::uint32_t busy_ = 0;
  Cycles next_start_;
  std::uint64_t walks_ = 0;
  Cycles busy_cycles_;
  Cycles queue_wait_;
};

}  // namespace demarc::sim::translation
