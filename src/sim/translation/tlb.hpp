// A TLB with a request queue and miss-status registers (MSHRs). Look-up order: pending pages first
// (join), then the sets (hit), else a miss; a miss with all MSHRs taken blocks the queue, hits
// behind it included.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/sim/translation/simulate.hpp"
#include "lru_sets.hpp"

namespace demarc::sim::translation {

// Time where several things begin per cycle, such as look-ups of a TLB: turns of its ports.
using Turns = Quantity<struct TurnsTag>;
class Ports {
 public:
  explicit Ports(std::uint32_t count) : count_(count) {}
  // The first turn of a cycle.
  [[nodiscard, gnu::always_inline]] Turns first_of(Cycles cycle) const {
    return Turns(cycle.raw() * count_);
  }
  [[nodiscard, gnu::always_inline]] Cycles cycle_of(Turns turn) const {
    return Cycles(turn.raw() / count_);
  }
  // Cycles that so many answers take which leave one after the other.
  [[nodiscard, gnu::always_inline]] Cycles after(std::uint64_t answers) const {
    return Cycles(count_ == 1 ? answers : answers / count_);
  }

 private:
  std::uint32_t count_;
};

// Waiter: what is handed back when the page arrives.
template <class Waiter>
class Tlb {
 public:
  enum class Outcome { hit, joined, missed, blocked };

  Tlb(std::uint32_t sets, std::uint32_t ways, std::uint32_t mshrs)
      : entries_(sets, ways), mshrs_(mshrs) {}

  Outcome look_up(PageNumber page, const Waiter& waiter) {
    for (Mshr& mshr : mshrs_) {
      if (mshr.used && mshr.page == page) {
        mshr.waiters.push_back(waiter);
        ++counts_.joined;
        return Outcome::joined;
      }
    }
    if (entries_.touch(page)) {
      ++counts_.hits;
      return Outcome::hit;
    }
    for (Mshr& mshr : mshrs_) {
      if (mshr.used) continue;
      mshr.used = true;
      mshr.page = page;
      mshr.waiters.assign(1, waiter);
      ++pending_;
      ++counts_.misses;
      return Outcome::missed;
    }
    return Outcome::blocked;
  }

  // Enters the page and calls done(waiter) for everyone who waited for it, in order.
  template <class Done>
  void fill(PageNumber page, Done done) {
    entries_.insert(page);
    for (Mshr& mshr : mshrs_) {
      if (!mshr.used || mshr.page != page) continue;
      mshr.used = false;
      --pending_;
      released_.swap(mshr.waiters);
      for (const Waiter& waiter : released_) done(waiter);
      released_.clear();
      return;
    }
  }

  // Takes the page out of the entries; who waits for it goes on waiting.
  void invalidate(PageNumber page) { entries_.erase(page); }

  [[nodiscard]] const TlbCounts& counts() const { return counts_; }
  [[nodiscard]] std::uint32_t pending() const { return pending_; }

 private:
  struct Mshr {
    bool used = false;
    PageNumber page;
    std::vector<Waiter> waiters;
  };
  LruSets<PageNumber> entries_;
  std::vector<Mshr> mshrs_;
  std::vector<Waiter> released_;
  std::uint32_t pending_ = 0;
  TlbCounts counts_;
};

}  // namespace demarc::sim::translation
