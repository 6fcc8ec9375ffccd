// The SimTBS rules tick by tick, one object a thread block, written from the rules alone: what the
// engine must equal. No grouping, no jumps, no tables computed ahead.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "demarc/sim/dispatch/tb_config.hpp"

namespace demarc::sim::plain {

struct Outcome {
  TbTicks ticks;
  PerIndex<KernelIndex, TbTicks> first, end;    // ~0: never
  std::vector<std::vector<std::uint64_t>> use;  // after each tick's completions, a resource each
  std::vector<std::uint64_t> memory_use;        // summed over ticks
  std::uint64_t finished = 0;
  std::uint64_t blocks_run = 0;  // summed over ticks
  std::optional<std::uint32_t> out_of_memory;
};

struct Block {
  KernelIndex kernel;
  float left;
};

struct Sm {
  std::vector<std::uint32_t> used;
  std::vector<Block> blocks;
};

// Whose fields memory requests are read from: the rules' own table.
inline std::vector<std::size_t> memory_field(const TbConfig& c, TbModel model) {
  const std::size_t n = c.sm.max.size();
  std::vector<std::size_t> field;
  for (std::size_t m = 0; m < c.memory.size(); ++m) field.push_back(n + m);
  if (model == TbModel::corrected) return field;
  if (c.memory.size() == 1 && n >= 2 && n <= 11) field[0] = 1;
  if (c.memory.size() == 2 && n >= 3 && n <= 10) field = {2, 3};
  if (c.memory.size() == 2 && n == 11) field[0] = 1;
  return field;
}

class Reference {
 public:
  Reference(const TbConfig& config, std::string policy, TbModel model)
      : c_(config),
        policy_(std::move(policy)),
        of_2020_(model == TbModel::simtbs_2020),
        waits_for_memory_(model == TbModel::corrected),
        field_(memory_field(config, model)) {
    sms_.resize(c_.sm.n_sms);
    for (Sm& sm : sms_) sm.used.assign(c_.sm.max.size(), 0);
    memory_.assign(c_.memory.size(), 0);
    placed_.assign(c_.kernels.size(), 0);
    completed_.assign(c_.kernels.size(), 0);
    out_.first.assign(c_.kernels.size(), TbTicks(~0U));
    out_.end.assign(c_.kernels.size(), TbTicks(~0U));
    out_.memory_use.assign(c_.memory.size(), 0);
  }

  Outcome run() {
    TbTicks t;
    while (!all_complete() && (c_.max_simtime == 0_ticks || t < c_.max_simtime)) {
      for (const KernelIndex k : c_.kernels.keys()) {
        if (c_.kernels[k].start == t) active_.push_back(k);
      }
      schedule(t);
      if (out_.out_of_memory) break;
      execute(t);
      std::vector<std::uint64_t> use(c_.sm.max.size(), 0);
      for (const Sm& sm : sms_) {
        for (std::size_t r = 0; r < use.size(); ++r) use[r] += sm.used[r];
      }
      out_.use.push_back(use);
      for (std::size_t m = 0; m < memory_.size(); ++m) out_.memory_use[m] += memory_[m];
      ++t;
    }
    out_.ticks = t;
    return out_;
  }

  static float lookup(const OverheadTable& table, std::size_t column, float x) {
    if (table.rows.empty()) return 0;
    float x0 = 0;
    float y0 = 0;
    float slope = 0;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      const float x1 = table.rows[i].ratio;
      const float y1 = table.rows[i].cost[column];
      if (i > 0) {
        x0 = table.rows[i - 1].ratio;
        y0 = table.rows[i - 1].cost[column];
      }
      slope = (y1 - y0) / (x1 - x0);
      if (x <= x1) break;
    }
    return slope * (x - x0) + y0;
  }

 private:
  bool all_complete() const {
    for (const KernelIndex k : c_.kernels.keys()) {
      if (completed_[k] < c_.kernels[k].n_tb) return false;
    }
    return true;
  }

  std::uint32_t request(KernelIndex k, std::size_t r) const { return c_.kernel_fields(k)[r]; }
  float share(std::uint64_t used, std::size_t r) const {
    return static_cast<float>(used) / static_cast<float>(c_.sm.max[r]);
  }
  bool fits(const Sm& sm, KernelIndex k) const {
    for (std::size_t r = 0; r < c_.sm.n_sched; ++r) {
      if (sm.used[r] + request(k, r) > c_.sm.max[r]) return false;
    }
    return true;
  }
  float fullest(const Sm& sm, KernelIndex k, std::size_t resources) const {
    float worst = 0;
    for (std::size_t r = 0; r < resources; ++r) {
      worst = std::max(worst, share(sm.used[r] + request(k, r), r));
    }
    return worst;
  }
  bool smk_allows(const Sm& sm, KernelIndex k) const {
    float used[2] = {0, 0};
    float asked[2] = {0, 0};
    for (std::size_t r = 0; r < c_.sm.max.size(); ++r) {
      const std::size_t side = r < c_.sm.n_boundary ? 0 : 1;
      used[side] = std::max(used[side], share(sm.used[r], r));
      asked[side] = std::max(asked[side], share(request(k, r), r));
    }
    return used[0] + asked[0] <= 1.5F && used[1] + asked[1] <= 1.5F;
  }

  int choose(KernelIndex k) {
    const int n = static_cast<int>(sms_.size());
    if (policy_ == "rr" && of_2020_ && (ended_ || pointer_ == n)) {
      // Behind the last SM: the machine as a whole is looked at, and the tick ends.
      std::uint64_t total = request(k, 0);
      for (const Sm& sm : sms_) total += sm.used[0];
      if (!ended_ && total <= std::uint64_t{c_.sm.max[0]} * sms_.size()) pointer_ = 0;
      ended_ = true;
      return -1;
    }
    if (policy_ == "rr" || policy_ == "smk" || policy_ == "fua") {
      const Sm& sm = sms_[static_cast<std::size_t>(pointer_)];
      if (!fits(sm, k)) return -1;
      if (policy_ == "smk" && !smk_allows(sm, k)) return -1;
      if (policy_ == "fua" && !(fullest(sm, k, c_.sm.max.size()) <= 1.5F)) return -1;
      const int chosen = pointer_;
      pointer_ = policy_ == "rr" && of_2020_ ? pointer_ + 1 : (pointer_ + 1) % n;
      return chosen;
    }
    if (policy_ == "rr-skip") {
      for (int i = 0; i < n; ++i) {
        const int sm = (pointer_ + i) % n;
        if (!fits(sms_[static_cast<std::size_t>(sm)], k)) continue;
        pointer_ = (sm + 1) % n;
        return sm;
      }
      return -1;
    }
    if (policy_ == "rrf") {
      for (int i = 0; i < n && !ended_; ++i) {
        if (fits(sms_[static_cast<std::size_t>(pointer_)], k)) return pointer_;
        pointer_ = (pointer_ + 1) % n;
        ended_ = pointer_ == 0 && of_2020_;
      }
      return -1;
    }
    if (policy_ == "hw") return choose_as_hardware(k);
    return smallest(k, [&](const Sm& sm) { return score(sm, k); });
  }

  // The SM that fits with the smallest score, the lowest number among equals.
  template <class Score>
  int smallest(KernelIndex k, Score score) {
    int best = -1;
    float least = 0;
    for (std::size_t i = 0; i < sms_.size(); ++i) {
      if (!fits(sms_[i], k)) continue;
      const float s = score(sms_[i]);
      if (best >= 0 && !(s < least)) continue;
      best = static_cast<int>(i);
      least = s;
    }
    return best;
  }

  float score(const Sm& sm, KernelIndex k) const {
    // `locality` with a map chooses the block for the emptiest SM.
    if (policy_ == "bfa" || policy_ == "locality") return fullest(sm, k, c_.sm.n_sched);
    if (policy_ == "dfa") return -fullest(sm, k, c_.sm.n_sched);
    float sum = 0;
    for (std::size_t r = 0; r < sm.used.size(); ++r) {
      if (policy_ == "least-loaded") {
        sum += share(sm.used[r], r);
        continue;
      }
      const auto max = static_cast<float>(c_.sm.max[r]);
      const float left =
          1.0F - (static_cast<float>(sm.used[r]) + static_cast<float>(request(k, r))) / max;
      sum += left < 0 ? 4.0F * left * left : left * left;  // best-fit
    }
    return sum;
  }

  // GPCs of 8 TPCs of 2 SMs take turns; the TPC with the lowest sum of shares, there the emptier
  // SM.
  int choose_as_hardware(KernelIndex k) {
    const std::size_t gpcs = (sms_.size() + 15) / 16;
    for (std::size_t tried = 0; tried < gpcs; ++tried) {
      const std::size_t gpc = (gpc_ + tried) % gpcs;
      int best = -1;
      float least = 0;
      for (std::size_t tpc = gpc * 8; tpc < gpc * 8 + 8; ++tpc) {
        int here = -1;
        float sum = 0;
        for (std::size_t sm = tpc * 2; sm < tpc * 2 + 2 && sm < sms_.size(); ++sm) {
          const float f = fullest(sms_[sm], k, c_.sm.n_sched);
          sum += f;
          if (!fits(sms_[sm], k)) continue;
          const auto chosen = static_cast<std::size_t>(here);
          if (here < 0 || f < fullest(sms_[chosen], k, c_.sm.n_sched)) here = static_cast<int>(sm);
        }
        if (here < 0 || (best >= 0 && sum >= least)) continue;
        best = here;
        least = sum;
      }
      if (best < 0) continue;
      gpc_ = (gpc + 1) % gpcs;
      return best;
    }
    return -1;
  }

  void schedule(TbTicks t) {
    for (std::size_t r = 0; r < c_.sm.n_sched; ++r) {
      std::uint64_t total = 0;
      for (const Sm& sm : sms_) total += sm.used[r];
      if (total == std::uint64_t{c_.sm.max[r]} * sms_.size()) return;
    }
    ended_ = false;
    while (true) {
      const auto at = std::find_if(active_.begin(), active_.end(),
                                   [&](KernelIndex k) { return placed_[k] < c_.kernels[k].n_tb; });
      if (at == active_.end()) return;
      const KernelIndex k = *at;
      for (std::size_t m = 0; waits_for_memory_ && m < memory_.size(); ++m) {
        if (memory_[m] + c_.kernel_fields(k)[field_[m]] > c_.memory[m]) return;
      }
      const int chosen = choose(k);
      if (chosen < 0) return;
      Sm& sm = sms_[static_cast<std::size_t>(chosen)];
      for (std::size_t r = 0; r < sm.used.size(); ++r) sm.used[r] += request(k, r);
      for (std::size_t m = 0; m < memory_.size(); ++m) {
        memory_[m] += c_.kernel_fields(k)[field_[m]];
        if (memory_[m] > c_.memory[m]) {
          out_.out_of_memory = memory_[m];
          return;
        }
      }
      if (placed_[k]++ == 0) out_.first[k] = t;
      sm.blocks.push_back({k, static_cast<float>(c_.kernels[k].duration.raw())});
    }
  }

  // A block's costs as of 2020: the row at or above the units of its SM, and of what the memory in
  // use now costs the part that is the block's.
  float overhead_2020(std::uint32_t units, KernelIndex k) const {
    return sm_2020(units) + memory_2020(memory_[0]) * static_cast<float>(request(k, 1)) /
                                static_cast<float>(memory_[0]);
  }

 public:
  float sm_2020(std::uint32_t units) const {
    for (const OverheadTable::Row& row : c_.sm_overhead.rows) {
      if (units > 1 && units <= row_units(row, c_.sm.max[0])) return row.cost[0];
    }
    return 0;
  }
  float memory_2020(std::uint32_t used) const {
    std::uint32_t u0 = 0;
    float y0 = 0;
    for (const OverheadTable::Row& row : c_.memory_overhead.rows) {
      const std::uint32_t u1 = row_units(row, c_.memory[0]);
      if (used < u1) {
        return (row.cost[0] - y0) / static_cast<float>(u1 - u0) * static_cast<float>(used - u0) +
               y0;
      }
      u0 = u1;
      y0 = row.cost[0];
    }
    return 1;
  }

 private:
  void execute_2020(TbTicks t) {
    for (Sm& sm : sms_) {
      const std::uint32_t units = sm.used[0];
      for (std::size_t i = 0; i < sm.blocks.size();) {
        Block& block = sm.blocks[i];
        const KernelIndex k = block.kernel;
        block.left = block.left - 1.0F / (1.0F + overhead_2020(units, k));
        if (block.left > 0) {
          ++i;
          continue;
        }
        sm.blocks.erase(sm.blocks.begin() + static_cast<std::ptrdiff_t>(i));
        sm.used[0] -= request(k, 0);
        memory_[0] -= request(k, 1);
        ++out_.finished;
        if (++completed_[k] == c_.kernels[k].n_tb) out_.end[k] = t;
      }
    }
  }

  void execute(TbTicks t) {
    for (const Sm& sm : sms_) out_.blocks_run += sm.blocks.size();
    if (of_2020_) {
      execute_2020(t);
      return;
    }
    float memory_cost = 0;
    for (std::size_t m = 0; m < memory_.size(); ++m) {
      memory_cost += lookup(c_.memory_overhead, m,
                            static_cast<float>(memory_[m]) / static_cast<float>(c_.memory[m]));
    }
    for (Sm& sm : sms_) {
      const auto cost = [&](std::size_t r) {
        return sm.used[r] == 0 ? 0.0F : lookup(c_.sm_overhead, r, share(sm.used[r], r));
      };
      float sched = 0;
      float units = 0;
      float others = 0;
      for (std::size_t r = 0; r < c_.sm.n_sched; ++r) sched += cost(r);
      for (std::size_t r = c_.sm.n_sched; r < c_.sm.n_boundary; ++r)
        units = std::max(units, cost(r));
      for (std::size_t r = c_.sm.n_boundary; r < sm.used.size(); ++r) {
        others = std::max(others, cost(r));
      }
      sched += units;
      sched += others;
      const float overhead = sched + memory_cost;
      std::vector<Block> staying;
      for (Block block : sm.blocks) {
        block.left = block.left - 1.0F / (1.0F + overhead);
        if (block.left > 0) {
          staying.push_back(block);
          continue;
        }
        done_.push_back(block.kernel);
        ++out_.finished;
        if (++completed_[block.kernel] == c_.kernels[block.kernel].n_tb) {
          out_.end[block.kernel] = t;
        }
      }
      sm.blocks = staying;
      for (const KernelIndex k : done_) {
        for (std::size_t r = 0; r < sm.used.size(); ++r) sm.used[r] -= request(k, r);
        for (std::size_t m = 0; m < memory_.size(); ++m) {
          memory_[m] -= c_.kernel_fields(k)[field_[m]];
        }
      }
      done_.clear();
    }
  }

  const TbConfig& c_;
  std::string policy_;
  bool of_2020_;
  bool waits_for_memory_;
  std::vector<std::size_t> field_;
  std::size_t gpc_ = 0;
  std::vector<Sm> sms_;
  std::vector<std::uint32_t> memory_;
  PerIndex<KernelIndex, std::uint32_t> placed_, completed_;
  std::vector<KernelIndex> active_, done_;
  int pointer_ = 0;
  bool ended_ = false;
  Outcome out_;
};

}  // namespace demarc::sim::plain
