// A thread-block dispatch policy picks the SM for the next thread block. The same policies drive
// the SimTBS model and any other machine that keeps its occupancy in a Machine. docs/policies.md
// shows how to add one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sim/dispatch/block_sharing.hpp"
#include "demarc/sim/dispatch/tb_config.hpp"
#include "demarc/sim/dispatch/usage_levels.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim {

// The thread block to place. Blocks of a kernel are alike. All of them are placed before those of
// another kernel, in index order if the policy has no order of its own.
struct BlockRequest {
  std::span<const std::uint32_t> sm;  // request of each SM resource
  KernelIndex kernel;
  BlockNumber block;         // the first one asked for: how many were placed
  std::uint32_t blocks = 0;  // of the kernel
};

// How much of every SM is in use. Arithmetic is unsigned 32-bit, as in the published program.
class Machine {
 public:
  explicit Machine(SmSpec spec);

  [[nodiscard]] const SmSpec& spec() const { return spec_; }
  [[nodiscard]] std::uint32_t sms() const { return spec_.n_sms; }
  [[nodiscard]] std::size_t resources() const { return resources_; }
  [[nodiscard]] std::uint32_t max(std::size_t resource) const { return spec_.max[resource]; }
  [[nodiscard]] std::uint32_t used(SmIndex sm, std::size_t resource) const {
    return used_[sm.raw() * resources_ + resource];
  }
  // The use of each resource of one SM.
  [[nodiscard]] const std::uint32_t* usage(SmIndex sm) const {
    return used_.data() + sm.raw() * resources_;
  }
  // Units in use over all SMs.
  [[nodiscard]] std::uint64_t total(std::size_t resource) const { return total_[resource]; }
  [[nodiscard]] std::uint64_t capacity(std::size_t resource) const {
    return std::uint64_t{spec_.n_sms} * spec_.max[resource];
  }
  // Some scheduling resource is in use to the last unit on every SM.
  [[nodiscard]] bool full() const {
    for (std::size_t r = 0; r < spec_.n_sched; ++r) {
      if (total_[r] == capacity(r)) return true;
    }
    return false;
  }

  // Scheduling resources decide; the others may pass their capacity.
  [[nodiscard]] bool fits(SmIndex sm, const BlockRequest& block) const {
    const std::uint32_t* used = used_.data() + sm.raw() * resources_;
    for (std::size_t r = 0; r < spec_.n_sched; ++r) {
      if (used[r] + block.sm[r] > spec_.max[r]) return false;
    }
    return true;
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
  // Only with levels().
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

  SmSpec spec_;
  std::size_t resources_;
  std::vector<std::uint32_t> used_;  // [sm][resource]
  std::vector<std::uint64_t> total_;
  bool wraps_ = false;  // a request above a capacity was placed: sums may have wrapped around
  std::optional<UsageLevels> levels_;
};

// The contract: choose() looks and does not place. It returns no_sm if the block must wait; that
// ends dispatch for this tick. Asked again on an unchanged machine, it returns no_sm again. It may
// keep state (a rotation pointer). The caller places the block at once on the SM that it returned.
// Deterministic: ties go to the lowest SM number unless the policy's rule says otherwise.
class DispatchPolicy {
 public:
  DispatchPolicy() = default;
  DispatchPolicy(const DispatchPolicy&) = delete;
  DispatchPolicy& operator=(const DispatchPolicy&) = delete;
  virtual ~DispatchPolicy() = default;

  [[nodiscard]] virtual SmIndex choose(const Machine& machine, const BlockRequest& block) = 0;

  // Places up to out.size() equal blocks and writes where; fewer if one must wait. Override it only
  // for speed: the result must be that of choose() and place() in turn.
  [[nodiscard]] virtual std::size_t choose_many(Machine& machine, BlockRequest block,
                                                std::span<SmIndex> out);
  // The blocks of the kernel for which the last choose() or choose_many() found SMs, in turn. Each
  // block is given once. Empty: those asked for, in index order.
  [[nodiscard]] virtual std::span<const BlockNumber> given() const { return {}; }
  // Dispatch of another tick begins.
  virtual void begin_tick() {}
};

// What a policy may want to know besides the machine.
struct PolicySettings {
  // The rule of 2020: rr and rrf end dispatch for a tick when their pointer passes the last SM.
  bool wrap_ends_tick = false;
  SmSpec spec;
  // `locality`: blocks i with equal i / blocks_per_group share data. 0: as many as fit one SM.
  std::uint32_t blocks_per_group = 0;
  // `locality`: what the blocks of each kernel share; null or missing: not known. Must outlive the
  // policy.
  PerIndex<KernelIndex, const BlockSharing*> sharing;
  std::uint32_t sms_per_tpc = 2;  // `hw`
  std::uint32_t tpcs_per_gpc = 8;
};

struct PolicyInfo {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<DispatchPolicy> (*make)(const PolicySettings& settings);
};

[[nodiscard]] std::span<const PolicyInfo> dispatch_policies();
[[nodiscard]] Result<const PolicyInfo*> find_policy(std::string_view name);

}  // namespace demarc::sim
