// The tick loop. It skips ticks without blocks, computes steps again only if the occupancy has
// changed, and does not ask a policy that found no room again before something was freed.
#include "demarc/sim/dispatch/tb_simulation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "demarc/sim/dispatch/machine.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "dispatch/block_residents.hpp"
#include "dispatch/residents.hpp"
#include "dispatch/row_residents.hpp"
#include "dispatch/sm_overhead.hpp"

namespace demarc::sim {
namespace {

// `one` machines, with one SM resource and one memory, have loops of known length.
// `Store`: Residents or RowResidents, or BlockResidents, which has the rules of 2020.
template <bool one, class Store>
class TbSimulation {
  static constexpr bool in_order = std::is_same_v<Store, BlockResidents>;

 public:
  TbSimulation(const TbConfig& config, const TbOptions& options)
      : config_(config),
        options_(options),
        machine_(config.sm),
        overhead_(config),
        residents_(config.sm.n_sms, options.observer != nullptr),
        memory_used_(config.memory.size()),
        memory_request_(config.memory.size()),
        sm_cost_(Residents::padded(config.sm.n_sms)) {}

  Result<TbRun> run() {
    DEMARC_TRY(memory_map_, memory_fields(config_, options_.model));
    DEMARC_TRY(const PolicyInfo* info, find_policy(options_.policy));
    PolicySettings settings;
    settings.wrap_ends_tick =
        options_.policy_rules.value_or(options_.model) == TbModel::simtbs_2020;
    settings.blocks_per_group = options_.blocks_per_group;
    settings.sharing = sharing_by_kernel();
    policy_ = info->make(settings);
    DEMARC_CHECK(prepare());
    while (finished_ < config_.kernels.size() && (limit_ == 0_ticks || tick_ < limit_)) {
      if (residents_.empty() && head_ == arrived_) {
        const TbTicks start = config_.kernels[order_of(arrived_)].start;
        if (start > tick_) {
          skip_to(limit_ == 0_ticks ? start : std::min(start, limit_));
          continue;
        }
      }
      if (!one_tick()) return tl::unexpected(std::move(*error_));
      if (run_.out_of_memory) break;
      if (tick_ == KernelOutcome::never) {
        return invalid_input("{}: the tick counter is exhausted", config_.source);
      }
      ++tick_;
    }
    run_.ticks = tick_;
    return std::move(run_);
  }

 private:
  [[nodiscard]] KernelIndex order_of(std::size_t position) const {
    return order_.empty() ? KernelIndex(static_cast<std::uint32_t>(position)) : order_[position];
  }

  [[nodiscard]] PerIndex<KernelIndex, const BlockSharing*> sharing_by_kernel() const {
    PerIndex<KernelIndex, const BlockSharing*> by_kernel;
    if (options_.sharing.empty()) return by_kernel;
    for (const TbKernel& kernel : config_.kernels) {
      auto found = options_.sharing.find(kernel.type);
      if (found == options_.sharing.end()) found = options_.sharing.find(0);
      by_kernel.push_back(found == options_.sharing.end() ? nullptr : &found->second);
    }
    return by_kernel;
  }

  Result<void> prepare() {
    if (in_order) {
      DEMARC_TRY(unit_costs_, UnitCosts::make(config_));
    }
    const auto& kernels = config_.kernels;
    const auto negative = std::find_if(kernels.begin(), kernels.end(),
                                       [](const TbKernel& k) { return k.negative_memory; });
    if (negative != kernels.end()) {
      return invalid_input(
          "{}:{}: a memory request of this kernel is below 0; it must be 0 or more", config_.source,
          negative->line);
    }
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
      std::iota(order_.begin(), order_.end(), KernelIndex());
      std::stable_sort(order_.begin(), order_.end(),
                       [&](KernelIndex a, KernelIndex b) { return later(kernels[a], kernels[b]); });
    }
    constexpr TbTicks single_precision(1U << 24);
    for (const KernelIndex k : kernels.keys()) {
      may_stand_still_ = may_stand_still_ || kernels[k].duration >= single_precision;
      for (std::size_t r = 0; r < config_.resources(); ++r) {
        wraps_ = wraps_ || config_.kernel_fields(k)[r] > config_.sm.max[r];
      }
      for (std::size_t m = 0; m < config_.memory.size(); ++m) {
        memory_wraps_ =
            memory_wraps_ || config_.kernel_fields(k)[memory_map_[m]] > config_.memory[m];
      }
    }
    for (const OverheadTable* table : {&config_.sm_overhead, &config_.memory_overhead}) {
      for (const float cost : table->rows.empty() ? std::vector<float>{} : table->rows[0].cost) {
        may_stand_still_ = may_stand_still_ || cost < 0;
      }
    }
    by_level_ = one && !in_order && !wraps_ && config_.sm.max[0] <= Residents::max_levels();
    if (by_level_) level_cost_.resize(config_.sm.max[0] <= 16 ? 16 : 64);
    for (std::uint32_t use = 1; by_level_ && use <= config_.sm.max[0]; ++use) {
      level_cost_[use - 1] = overhead_.sm_cost(&use);
    }
    limit_ = config_.max_simtime;
    run_.kernels.resize(kernels.size());
    left_.reserve(kernels.size());
    for (const KernelIndex k : kernels.keys()) {
      left_.push_back({kernels[k].n_tb, config_.kernel_fields(k)[0],
                       memory_map_.empty() ? 0 : memory_request(k, 0)});
    }
    run_.sm_use.resize(config_.resources());
    run_.sm_use_full.resize(config_.resources());
    run_.memory_use.resize(config_.memory.size());
    run_.memory_use_full.resize(config_.memory.size());
    return {};
  }

  template <class... Args>
  bool fail(fmt::format_string<Args...> format, Args&&... args) {
    error_ = invalid_input(format, std::forward<Args>(args)...).value();
    return false;
  }

  void skip_to(TbTicks tick) {
    if (options_.observer != nullptr) options_.observer->ended(tick_, tick - tick_, machine_);
    tick_ = tick;
  }

  // False: there is an error_. So are execute(), stuck() and stand_still().
  bool one_tick() {
    while (arrived_ < config_.kernels.size() &&
           config_.kernels[order_of(arrived_)].start == tick_) {
      ++arrived_;
    }
    if (head_ < arrived_ && !machine_.full() &&
        (!waiting_ || options_.model == TbModel::simtbs_2020)) {
      dispatch();
      if (run_.out_of_memory) return true;
    }
    add_use(run_.sm_use_full, run_.memory_use_full);
    if (!residents_.empty()) {
      idle_failures_ = 0;
      if (!execute()) return false;
    } else if (head_ < arrived_ && ++idle_failures_ > config_.sm.n_sms) {
      // Nothing runs and the head of the queue found no room on the whole machine, wherever the
      // policy's pointer stood: nothing will ever change.
      return stuck();
    }
    add_use(run_.sm_use, run_.memory_use);
    if (options_.observer != nullptr) options_.observer->ended(tick_, 1_ticks, machine_);
    return true;
  }

  bool stuck() {
    if (limit_ != 0_ticks) {
      add_use(run_.sm_use, run_.memory_use);
      if (options_.observer != nullptr) {
        options_.observer->ended(tick_, limit_ - tick_, machine_);
      }
      tick_ = limit_ - 1_ticks;
      return true;
    }
    const TbKernel& kernel = config_.kernels[order_of(head_)];
    return fail(
        "{}:{}: a block of this kernel never finds an SM under policy {} and blocks the queue for "
        "ever; lower its requests or set max_simtime",
        config_.source, kernel.line, options_.policy);
  }

  [[nodiscard]] std::uint32_t memory_request(KernelIndex kernel, std::size_t memory) const {
    return config_.kernel_fields(kernel)[memory_map_[memory]];
  }

  // As many of `blocks` blocks of the head kernel as the memories have room for.
  [[nodiscard]] std::uint64_t within_memory(std::uint64_t blocks) const {
    if (memory_wraps_) {
      for (std::size_t m = 0; m < memories(); ++m) {
        if (memory_used_[m] + memory_request_[m] > config_.memory[m]) return 0;
      }
      return std::min<std::uint64_t>(blocks, 1);
    }
    for (std::size_t m = 0; m < memories(); ++m) {
      const std::uint64_t free = std::uint64_t{config_.memory[m]} - memory_used_[m];
      if (blocks * memory_request_[m] > free) blocks = free / memory_request_[m];
    }
    return blocks;
  }

  void dispatch() {
    policy_->begin_tick();
    while (head_ < arrived_) {
      const KernelIndex k = order_of(head_);
      const TbKernel& kernel = config_.kernels[k];
      for (std::size_t m = 0; m < memories(); ++m) memory_request_[m] = memory_request(k, m);
      const std::uint64_t asked =
          within_memory(std::min<std::uint64_t>(kernel.n_tb - head_placed_, places_.size()));
      const BlockRequest block{config_.kernel_fields(k).first(config_.resources()), k,
                               BlockNumber(head_placed_), kernel.n_tb};
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
      const std::uint32_t use = memory_used_[m] + memory_request_[m];
      if (use <= config_.memory[m]) continue;
      run_.out_of_memory = use;
      return;
    }
  }

  void take_in(KernelIndex k, std::size_t placed) {
    if (placed == 0) return;
    if (run_.kernels[k].first_run == KernelOutcome::never) run_.kernels[k].first_run = tick_;
    const std::span<const SmIndex> places = std::span(places_).first(placed);
    if (head_placed_ > 0 && places[0] == last_place_) ++run_.neighbours_together;
    run_.neighbours_together +=
        residents_.add(places, k, tick_, static_cast<float>(config_.kernels[k].duration.raw()));
    price(places);
    last_place_ = places.back();
    if (options_.observer != nullptr) {
      const std::span<const BlockNumber> given = policy_->given();
      for (std::uint32_t i = 0; i < placed; ++i) {
        options_.observer->placed(tick_, places[i], k,
                                  given.empty() ? BlockNumber(head_placed_ + i) : given[i]);
      }
    }
    for (std::size_t m = 0; m < memories(); ++m) {
      memory_used_[m] += static_cast<std::uint32_t>(placed) * memory_request_[m];
    }
    run_.placed_blocks += placed;
    changed_ = true;
  }

  bool execute() {
    if constexpr (in_order) {
      return execute_in_order();
    } else {
      return execute_at_once();
    }
  }

  // By the rules of 2020.
  bool execute_in_order() {
    typename Store::Tick tick;
    {
      Completion completion(*this);
      tick = residents_.run(
          *unit_costs_, machine_.usage(SmIndex()), memory_used_[0],
          [this](KernelIndex kernel) { return left_[kernel].memory; }, completion);
      completion.close();
    }
    if (tick.divides_by_zero) {
      return fail(
          "{}:{}: a block of this kernel runs while no memory is in use (tick {}): the published "
          "program divides by zero and crashes; let it ask for some",
          config_.source, config_.kernels[residents_.some_kernel()].line, tick_);
    }
    waiting_ = waiting_ && !tick.any_done;
    return tick.any_moved || stand_still();
  }

  bool execute_at_once() {
    const bool changed = changed_;
    if (changed) {
      memory_cost_ = overhead_.memory_cost(memory_used_);
      if (std::isnan(memory_cost_)) {
        return fail(
            "{}:{}: this first row at ratio 0 divides by zero when no memory is in use (tick {}): "
            "the published program crashes on that; start the table above 0",
            config_.source, config_.memory_overhead.rows.front().line, tick_);
      }
      changed_ = false;
    }
    if (may_stand_still_) before_ = residents_.work();
    residents_.advance({.sm_cost = sm_cost_.data(),
                        .memory_cost = memory_cost_,
                        .level_cost = level_cost_,
                        .used = machine_.usage(SmIndex()),
                        .changed = changed});
    complete();
    if (may_stand_still_ && !changed_ && before_ == residents_.work()) return stand_still();
    return true;
  }

  // No block made progress: the subtraction is below half a unit in the last place.
  bool stand_still() {
    if (limit_ != 0_ticks) return true;
    return fail(
        "{}:{}: a block of this kernel never ends: in single precision its remaining work is too "
        "large for one tick to lessen it; shorten it or set max_simtime",
        config_.source, config_.kernels[residents_.some_kernel()].line);
  }

  // For each kernel: blocks not completed, and its first requests, beside each other for speed.
  struct Left {
    std::uint32_t blocks, request, memory;
  };
  // Takes completed blocks out of the machine and off their kernels.
  class Completion {
   public:
    explicit Completion(TbSimulation& simulation)
        : s_(simulation),
          release_(simulation.machine_),
          left_(simulation.left_.data()),
          used_(simulation.machine_.usage(SmIndex())),
          cost_(in_order || simulation.by_level_ ? nullptr : simulation.sm_cost_.data()),
          cost_of_(simulation.overhead_.template pricer<one>()) {}

    // Only with `one`.
    void row(KernelIndex kernel, SmIndex first_sm, std::uint32_t mask) {
      const auto count = static_cast<std::uint32_t>(std::popcount(mask));
      release_.row(first_sm, mask, count, left_of(kernel).request);
      for (std::uint32_t left = cost_ != nullptr ? mask : 0; left != 0; left &= left - 1) {
        const std::uint32_t sm =
            first_sm.raw() + static_cast<std::uint32_t>(std::countr_zero(left));
        cost_[sm] = cost_of_(used_ + sm);
      }
      take_off(kernel, count);
    }
    void state(KernelIndex kernel, SmIndex sm, std::uint32_t count, TbTicks placed) {
      const std::uint32_t* const request =
          one ? &left_of(kernel).request : s_.config_.fields.data() + kernel.raw() * s_.fields_;
      release_(sm, request, count);
      if (cost_ != nullptr) {
        cost_[sm.raw()] = cost_of_(used_ + sm.raw() * (one ? 1 : s_.machine_.resources()));
      }
      for (std::size_t m = 0; !one && m < s_.memory_used_.size(); ++m) {
        s_.memory_used_[m] -= count * request[s_.memory_map_[m]];
      }
      if (s_.options_.observer != nullptr) {
        s_.options_.observer->finished(s_.tick_, sm, kernel, placed, count);
      }
      take_off(kernel, count);
    }
    void close() {
      if (one) s_.memory_used_[0] -= memory_;
      s_.run_.finished_blocks += blocks_;
    }

   private:
    [[gnu::always_inline]] Left& left_of(KernelIndex kernel) { return left_[kernel.raw()]; }
    void take_off(KernelIndex kernel, std::uint32_t count) {
      Left& of = left_of(kernel);
      blocks_ += count;
      if (one) memory_ += count * of.memory;
      if ((of.blocks -= count) == 0) {
        s_.run_.kernels[kernel].end = s_.tick_;
        ++s_.finished_;
      }
    }

    TbSimulation& s_;
    Machine::Release<one> release_;
    Left* left_;
    const std::uint32_t* used_;
    float* cost_;
    decltype(std::declval<const OverheadModel&>().template pricer<one>()) cost_of_;
    std::uint64_t blocks_ = 0;
    std::uint32_t memory_ = 0;
  };

  [[gnu::noinline]] void complete() {
    Completion completion(*this);
    const bool any = residents_.drain(completion, !one || wraps_ || options_.observer != nullptr);
    completion.close();
    if (!any) return;
    changed_ = true;
    waiting_ = false;
  }

  // Works out the cost of the use of the SMs at which something changed, for the ticks to come.
  [[gnu::noinline]] void price(std::span<const SmIndex> sms) {
    if (in_order || by_level_) return;
    const std::uint32_t* const used = machine_.usage(SmIndex());
    const std::size_t resources = one ? 1 : machine_.resources();
    float* const cost = sm_cost_.data();
    const auto cost_of = overhead_.pricer<one>();
    for (const SmIndex sm : sms) cost[sm.raw()] = cost_of(used + sm.raw() * resources);
  }

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
  std::optional<UnitCosts> unit_costs_;  // where they count
  Store residents_;
  std::vector<std::uint32_t> memory_used_, memory_request_;
  std::vector<float> sm_cost_;
  bool by_level_ = false;  // few levels of use: costs by level instead of by SM
  std::vector<float> level_cost_;
  std::vector<KernelIndex> order_;  // kernels by start; empty: file order
  PerKernel<Left> left_;
  std::vector<float> before_;
  std::array<SmIndex, 1024> places_{};
  float memory_cost_ = 0;  // of the use at the last execute()
  TbRun run_;
  std::optional<Error> error_;
  std::size_t fields_ = config_.fields_per_kernel();
  TbTicks limit_;
  TbTicks tick_;
  std::size_t head_ = 0;     // oldest kernel with an unplaced block
  std::size_t arrived_ = 0;  // kernels before this one have arrived
  std::uint32_t head_placed_ = 0;
  SmIndex last_place_ = no_sm;
  std::size_t finished_ = 0;
  std::uint32_t idle_failures_ = 0;
  bool waiting_ = false;  // no room, and nothing freed since
  bool changed_ = true;   // occupancy changed since memory_cost_ was computed
  bool may_stand_still_ = false;
  // Requests above a capacity wrap around in 32 bits, as in the published program ("-5").
  bool wraps_ = false;
  bool memory_wraps_ = false;
};

}  // namespace

Result<TbRun> simulate(const TbConfig& config, const TbOptions& options) {
  if (options.model == TbModel::simtbs_2020) {
    return TbSimulation<true, BlockResidents>(config, options).run();
  }
  // With n_boundary 0 the only resource counts twice: the general loops know.
  if (config.resources() == 1 && config.memory.size() == 1 && config.sm.n_boundary == 1) {
    if (options.policy == "rr") return TbSimulation<true, RowResidents>(config, options).run();
    return TbSimulation<true, Residents>(config, options).run();
  }
  return TbSimulation<false, Residents>(config, options).run();
}

}  // namespace demarc::sim
