// An occupancy that changes: blocks are placed and released, many at a time for speed.
#pragma once

#include <optional>
#include <utility>

#include "demarc/sim/dispatch/occupancy.hpp"
#include "demarc/sim/dispatch/usage_levels.hpp"

namespace demarc::sim {

class Machine : public Occupancy {
 public:
  explicit Machine(SmSpec spec) : Occupancy(std::move(spec)) {}

  // The use of each resource of one SM.
  [[nodiscard]] const std::uint32_t* usage(SmIndex sm) const {
    return used_.data() + sm.raw() * resources_;
  }
  // Some scheduling resource is in use to the last unit on every SM.
  [[nodiscard]] bool full() const {
    for (std::size_t r = 0; r < spec_.n_sched; ++r) {
      if (total_[r] == capacity(r)) return true;
    }
    return false;
  }

  void place(SmIndex sm, const BlockRequest& block) {
    std::uint32_t* used = used_.data() + sm.raw() * resources_;
    const std::uint32_t before = used[0];
    for (std::size_t r = 0; r < resources_; ++r) {
      add_use(sm, r, block.sm[r]);
      wraps_ = wraps_ || block.sm[r] > spec_.max[r];
    }
    if (levels_) levels_->move(sm, before, used[0]);
  }
  // Places one block on each SM from `first` on, until one does not fit, at most out.size() blocks
  // and up to the last SM. Writes the SMs and returns how many.
  std::uint32_t place_run(SmIndex first, const BlockRequest& block, std::span<SmIndex> out);
  // Places blocks on SMs of the lowest use, the lowest SM first, as many as `out` holds and fit.
  // Only where levels_serve().
  std::size_t place_breadth_first(const BlockRequest& block, std::span<SmIndex> out);
  // The same on SMs of the highest use with room.
  std::size_t place_depth_first(const BlockRequest& block, std::span<SmIndex> out);

  // Gives back what blocks took: release(sm, request, blocks). The totals are right once it has
  // gone out of scope. `one`: the machine has a single resource.
  template <bool one>
  class Release {
   public:
    explicit Release(Machine& machine)
        : machine_(machine),
          used_(machine.used_.data()),
          levels_(machine.levels_ ? &*machine.levels_ : nullptr) {}
    Release(const Release&) = delete;
    Release& operator=(const Release&) = delete;
    ~Release() { machine_.total_[0] -= units_; }
    // One block from each SM first_sm + i, i in the `count` bits of the 16 of `mask`. Only for a
    // single resource and requests that do not wrap around.
    void row(SmIndex first_sm, std::uint32_t mask, std::uint32_t count, std::uint32_t request) {
      machine_.release_row(first_sm, mask, request);
      units_ += std::uint64_t{count} * request;
    }
    void operator()(SmIndex sm, const std::uint32_t* request, std::uint32_t blocks) {
      std::uint32_t* used = used_ + sm.raw() * (one ? 1 : machine_.resources_);
      const std::uint32_t before = used[0];
      used[0] -= blocks * request[0];
      units_ += std::uint64_t{before} - used[0];
      for (std::size_t r = 1; !one && r < machine_.resources_; ++r) {
        machine_.add_use(sm, r, 0U - blocks * request[r]);
      }
      if (levels_ != nullptr) levels_->move(sm, before, used[0]);
    }

   private:
    Machine& machine_;
    std::uint32_t* used_;
    UsageLevels* levels_;
    std::uint64_t units_ = 0;
  };

  // Starts keeping the SMs sorted by use of the only scheduling resource, where that is possible
  // and nothing is in use yet; says whether place_breadth_first() and place_depth_first() serve
  // `block`.
  bool levels_serve(const BlockRequest& block);

 private:
  // The use of an SM may wrap around; the total follows it.
  void add_use(SmIndex sm, std::size_t resource, std::uint32_t amount) {
    std::uint32_t& used = used_[sm.raw() * resources_ + resource];
    total_[resource] -= used;
    used += amount;
    total_[resource] += used;
  }
  void release_row(SmIndex first_sm, std::uint32_t mask, std::uint32_t request);

  bool wraps_ = false;  // a request above a capacity was placed: sums may have wrapped around
  std::optional<UsageLevels> levels_;
};

}  // namespace demarc::sim
