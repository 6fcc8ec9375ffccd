// The tick loop. Ticks without blocks are jumped over, steps are computed anew only when occupancy
// changed, and a policy that found no room is not asked again before something was freed.
#include "demarc/sim/tb_simulation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "dispatch/residents.hpp"
#include "dispatch/sm_overhead.hpp"

namespace demarc::sim {
namespace {

// `one` machines, with one SM resource and one memory, have loops of known length.
template <bool one>
class TbSimulation {
 public:
  TbSimulation(const TbConfig& config, const TbOptions& options)
      : config_(config),
        options_(options),
        machine_(config.sm),
        overhead_(config),
        residents_(config.sm.n_sms),
        memory_used_(config.memory.size()),
        memory_request_(config.memory.size()),
        sm_cost_(Residents::padded(config.sm.n_sms)) {}

  Result<TbRun> run() {
    DEMARC_TRY(memory_map_, memory_fields(config_, options_.model));
    DEMARC_TRY(const PolicyInfo* info, find_policy(options_.policy));
    PolicySettings settings;
    settings.model = options_.model;
    settings.spec = config_.sm;
    settings.blocks_per_group = options_.blocks_per_group;
    settings.sharing = sharing_by_kernel();
    policy_ = info->make(settings);
    DEMARC_CHECK(prepare());
    while (finished_ < config_.kernels.size() && (limit_ == 0 || tick_ < limit_)) {
      if (residents_.groups() == 0 && head_ == arrived_) {
        const std::uint32_t start = config_.kernels[order_of(arrived_)].start;
        if (start > tick_) {
          skip_to(limit_ == 0 ? start : std::min(start, limit_));
          continue;
        }
      }
      DEMARC_CHECK(one_tick());
      if (run_.out_of_memory) break;
      if (tick_ == ~std::uint32_t{0}) {
        return invalid_input("{}: the tick counter is exhausted", config_.source);
      }
      ++tick_;
    }
    run_.ticks = tick_;
    return std::move(run_);
  }

 private:
  [[nodiscard]] std::uint32_t order_of(std::size_t position) const {
    return order_.empty() ? static_cast<std::uint32_t>(position) : order_[position];
  }

  [[nodiscard]] std::vector<const BlockSharing*> sharing_by_kernel() const {
    std::vector<const BlockSharing*> by_kernel;
    if (options_.sharing.empty()) return by_kernel;
    for (const TbKernel& kernel : config_.kernels) {
      auto found = options_.sharing.find(kernel.type);
      if (found == options_.sharing.end()) found = options_.sharing.find(0);
      by_kernel.push_back(found == options_.sharing.end() ? nullptr : &found->second);
    }
    return by_kernel;
  }

  Result<void> prepare() {
    const auto& kernels = config_.kernels;
    const auto later = [](const TbKernel& a, const TbKernel& b) { return a.start < b.start; };
    if (const auto at = std::is_sorted_until(kernels.begin(), kernels.end(), later);
        at != kernels.end()) {
      if (options_.model != TbModel::corrected) {
        return invalid_input(
            "{}:{}: this kernel starts at {}, before the one above it: the published program hangs "
            "on that; sort the kernels by start or use --model corrected",
            config_.source, at->line, at->start);
      }
      order_.resize(kernels.size());
      std::iota(order_.begin(), order_.end(), 0U);
      std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return later(kernels[a], kernels[b]);
      });
    }
    bool wraps = false;  // a request that wraps around can leave a use above the capacity
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      may_stand_still_ = may_stand_still_ || kernels[k].duration >= (1U << 24);
      wraps = wraps || config_.kernel_fields(k)[0] > config_.sm.max[0];
    }
    for (const OverheadTable* table : {&config_.sm_overhead, &config_.memory_overhead}) {
      for (const float cost : table->rows.empty() ? std::vector<float>{} : table->rows[0].cost) {
        may_stand_still_ = may_stand_still_ || cost < 0;
      }
    }
    by_level_ = one && !wraps && config_.sm.max[0] <= Residents::levels;
    for (std::uint32_t use = 1; by_level_ && use <= config_.sm.max[0]; ++use) {
      level_cost_[use - 1] = overhead_.sm_cost(&use);
    }
    limit_ = config_.max_simtime;
    run_.kernels.resize(kernels.size());
    left_.reserve(kernels.size());
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      left_.push_back({kernels[k].n_tb, config_.kernel_fields(k)[0],
                       memory_map_.empty() ? 0 : memory_request(static_cast<std::uint32_t>(k), 0)});
    }
    run_.sm_use.resize(config_.resources());
    run_.sm_use_full.resize(config_.resources());
    run_.memory_use.resize(config_.memory.size());
    run_.memory_use_full.resize(config_.memory.size());
    return {};
  }

  void skip_to(std::uint32_t tick) {
    if (options_.observer != nullptr) options_.observer->ended(tick_, tick - tick_, machine_);
    tick_ = tick;
  }

  Result<void> one_tick() {
    while (arrived_ < config_.kernels.size() &&
           config_.kernels[order_of(arrived_)].start == tick_) {
      ++arrived_;
    }
    if (head_ < arrived_ && !machine_.full() &&
        (!waiting_ || options_.model == TbModel::simtbs_2020)) {
      dispatch();
      if (run_.out_of_memory) return {};
    }
    add_use(run_.sm_use_full, run_.memory_use_full);
    if (residents_.groups() > 0) {
      idle_failures_ = 0;
      DEMARC_CHECK(execute());
    } else if (head_ < arrived_ && ++idle_failures_ > config_.sm.n_sms) {
      // Nothing runs and the head of the queue found no room on the whole machine, wherever the
      // policy's pointer stood: nothing will ever change.
      return stuck();
    }
    add_use(run_.sm_use, run_.memory_use);
    if (options_.observer != nullptr) options_.observer->ended(tick_, 1, machine_);
    return {};
  }

  Result<void> stuck() {
    if (limit_ != 0) {
      add_use(run_.sm_use, run_.memory_use);
      if (options_.observer != nullptr) {
        options_.observer->ended(tick_, limit_ - tick_, machine_);
      }
      tick_ = limit_ - 1;
      return {};
    }
    const TbKernel& kernel = config_.kernels[order_of(head_)];
    return invalid_input(
        "{}:{}: a block of this kernel never finds an SM under policy {} and blocks the queue for "
        "ever; lower its requests or set max_simtime",
        config_.source, kernel.line, options_.policy);
  }

  [[nodiscard]] std::uint32_t memory_request(std::uint32_t kernel, std::size_t memory) const {
    return config_.kernel_fields(kernel)[memory_map_[memory]];
  }

  // As many of `blocks` blocks of the head kernel as the memories have room for.
  [[nodiscard]] std::uint64_t within_memory(std::uint64_t blocks) const {
    for (std::size_t m = 0; m < memories(); ++m) {
      const std::uint64_t free = std::uint64_t{config_.memory[m]} - memory_used_[m];
      if (blocks * memory_request_[m] > free) blocks = free / memory_request_[m];
    }
    return blocks;
  }

  void dispatch() {
    policy_->begin_tick();
    while (head_ < arrived_) {
      const std::uint32_t k = order_of(head_);
      const TbKernel& kernel = config_.kernels[k];
      for (std::size_t m = 0; m < memories(); ++m) memory_request_[m] = memory_request(k, m);
      const std::uint64_t asked =
          within_memory(std::min<std::uint64_t>(kernel.n_tb - head_placed_, places_.size()));
      const BlockRequest block{config_.kernel_fields(k).first(config_.resources()), k,
                               head_placed_};
      if (asked == 0) {  // no memory for one more
        exceed_memory(block);
        return;
      }
      const std::size_t placed =
          policy_->choose_many(machine_, block, std::span(places_).first(asked));
      take_in(k, placed);
      head_placed_ += static_cast<std::uint32_t>(placed);
      if (head_placed_ == kernel.n_tb) {
        ++head_;
        head_placed_ = 0;
      }
      if (placed < asked) {
        waiting_ = true;
        return;
      }
    }
  }

  // The next block finds no memory: the published program ends if the policy has an SM for it.
  void exceed_memory(const BlockRequest& block) {
    if (options_.model == TbModel::corrected || policy_->choose(machine_, block) == no_sm) {
      waiting_ = true;
      return;
    }
    for (std::size_t m = 0; m < memories(); ++m) {
      const std::uint64_t use = std::uint64_t{memory_used_[m]} + memory_request_[m];
      if (use <= config_.memory[m]) continue;
      run_.out_of_memory = static_cast<std::uint32_t>(use);
      return;
    }
  }

  void take_in(std::uint32_t k, std::size_t placed) {
    if (placed == 0) return;
    if (run_.kernels[k].first_run == KernelOutcome::never) run_.kernels[k].first_run = tick_;
    // The same kernel may be taken in twice in a tick, the second time on SMs of the first.
    if (batch_kernel_ != k || batch_tick_ != tick_) {
      ++batch_;
      batch_kernel_ = k;
      batch_tick_ = tick_;
    }
    const std::span<const std::uint32_t> places = std::span(places_).first(placed);
    if (head_placed_ > 0 && places[0] == last_place_) ++run_.neighbours_together;
    run_.neighbours_together +=
        residents_.add(places, k, tick_, batch_, static_cast<float>(config_.kernels[k].duration));
    price(places);
    last_place_ = places.back();
    if (options_.observer != nullptr) {
      for (std::size_t i = 0; i < placed; ++i) options_.observer->placed(tick_, places[i], k, 1);
    }
    for (std::size_t m = 0; m < memories(); ++m) {
      memory_used_[m] += static_cast<std::uint32_t>(placed) * memory_request_[m];
    }
    run_.placed_blocks += placed;
    changed_ = true;
  }

  Result<void> execute() {
    if (changed_) {
      memory_cost_ = overhead_.memory_cost(memory_used_);
      if (std::isnan(memory_cost_)) {
        return invalid_input(
            "{}:{}: this first row at ratio 0 divides by zero when no memory is in use (tick {}): "
            "the published program crashes on that; start the table above 0",
            config_.source, config_.memory_overhead.rows.front().line, tick_);
      }
      changed_ = false;
    }
    if (may_stand_still_) before_ = residents_.work();
    const std::span<const Residents::Group> done =
        residents_.advance({.sm_cost = sm_cost_.data(),
                            .memory_cost = memory_cost_,
                            .level_cost = by_level_ ? level_cost_.data() : nullptr,
                            .used = machine_.usage(0)});
    if (!done.empty()) complete(done);
    if (may_stand_still_ && !changed_ && before_ == residents_.work()) return stand_still();
    return {};
  }

  // No block made progress: the subtraction is below half a unit in the last place.
  Result<void> stand_still() {
    if (limit_ != 0) return {};
    for (std::uint32_t sm = 0; sm < config_.sm.n_sms; ++sm) {
      if (residents_.empty(sm)) continue;
      return invalid_input(
          "{}:{}: a block of this kernel never ends: in single precision its remaining work is too "
          "large for one tick to lessen it; shorten it or set max_simtime",
          config_.source, config_.kernels[residents_.group(sm, 0).kernel].line);
    }
    return {};
  }

  [[gnu::noinline]] void complete(std::span<const Residents::Group> done) {
    std::uint64_t blocks = 0;
    std::uint32_t memory = 0;
    Machine::Release<one> release(machine_);
    Left* const left = left_.data();
    for (const Residents::Group& group : done) {
      Left& kernel = left[group.kernel];
      if (one) {
        release(group.sm, &kernel.request, group.blocks);
        memory += group.blocks * kernel.memory;
      } else {
        const std::uint32_t* fields = config_.fields.data() + group.kernel * fields_;
        release(group.sm, fields, group.blocks);
        for (std::size_t m = 0; m < memory_used_.size(); ++m) {
          memory_used_[m] -= group.blocks * fields[memory_map_[m]];
        }
      }
      blocks += group.blocks;
      if ((kernel.blocks -= group.blocks) == 0) {
        run_.kernels[group.kernel].end = tick_;
        ++finished_;
      }
    }
    price(done);
    if (options_.observer != nullptr) {
      for (const Residents::Group& g : done) {
        options_.observer->finished(tick_, g.sm, g.kernel, g.placed_tick, g.blocks);
      }
    }
    if (one) memory_used_[0] -= memory;
    run_.finished_blocks += blocks;
    changed_ = true;
    waiting_ = false;
  }

  // Works out the cost of the use of the SMs at which something changed, for the ticks to come.
  template <class Changes>
  [[gnu::noinline]] void price(const Changes& changes) {
    if (by_level_) return;
    const std::uint32_t* const used = machine_.usage(0);
    const std::size_t resources = one ? 1 : machine_.resources();
    float* const cost = sm_cost_.data();
    const auto cost_of = overhead_.pricer<one>();
    for (const auto& change : changes) {
      const std::uint32_t sm = sm_of(change);
      cost[sm] = cost_of(used + sm * resources);
    }
  }
  static std::uint32_t sm_of(std::uint32_t sm) { return sm; }
  static std::uint32_t sm_of(const Residents::Group& group) { return group.sm; }

  [[nodiscard]] std::size_t memories() const { return one ? 1 : memory_used_.size(); }

  void add_use(std::vector<std::uint64_t>& sm, std::vector<std::uint64_t>& memory) const {
    sm[0] += machine_.total(0);
    for (std::size_t r = 1; !one && r < sm.size(); ++r) sm[r] += machine_.total(r);
    for (std::size_t m = 0; m < memories(); ++m) memory[m] += memory_used_[m];
  }

  const TbConfig& config_;
  const TbOptions& options_;
  std::vector<std::uint32_t> memory_map_;
  std::unique_ptr<DispatchPolicy> policy_;
  Machine machine_;
  OverheadModel overhead_;
  Residents residents_;
  std::vector<std::uint32_t> memory_used_, memory_request_;
  std::vector<float> sm_cost_;
  bool by_level_ = false;  // few levels of use: costs by level instead of by SM
  std::array<float, Residents::levels> level_cost_{};
  std::vector<std::uint32_t> order_;  // kernels by start; empty: file order
  // Of each kernel: blocks not completed, and its first requests, beside each other for speed.
  struct Left {
    std::uint32_t blocks, request, memory;
  };
  std::vector<Left> left_;
  std::vector<float> before_;
  std::array<std::uint32_t, 1024> places_{};
  std::uint64_t batch_ = 0;
  std::uint32_t batch_kernel_ = ~std::uint32_t{0};
  std::uint32_t batch_tick_ = 0;
  float memory_cost_ = 0;  // of the use at the last execute()
  TbRun run_;
  std::size_t fields_ = config_.fields_per_kernel();
  std::uint32_t limit_ = 0;
  std::uint32_t tick_ = 0;
  std::size_t head_ = 0;     // oldest kernel with an unplaced block
  std::size_t arrived_ = 0;  // kernels before this one have arrived
  std::uint32_t head_placed_ = 0;
  std::uint32_t last_place_ = no_sm;
  std::size_t finished_ = 0;
  std::uint32_t idle_failures_ = 0;
  bool waiting_ = false;  // no room, and nothing freed since
  bool changed_ = true;   // occupancy changed since memory_cost_ was computed
  bool may_stand_still_ = false;
};

}  // namespace

Result<TbRun> simulate(const TbConfig& config, const TbOptions& options) {
  // With n_boundary 0 the only resource counts twice: the general loops know.
  if (config.resources() == 1 && config.memory.size() == 1 && config.sm.n_boundary == 1) {
    return TbSimulation<true>(config, options).run();
  }
  return TbSimulation<false>(config, options).run();
}

}  // namespace demarc::sim
