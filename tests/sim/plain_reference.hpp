// The SimTBS rules tick by tick, one object a thread block, written from the rules alone: what the
// engine must equal. No grouping, no jumps, no tables computed ahead.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "demarc/sim/tb_config.hpp"

namespace demarc::sim::plain {

struct Outcome {
  std::uint32_t ticks = 0;
  std::vector<std::uint32_t> first, end;        // ~0: never
  std::vector<std::vector<std::uint64_t>> use;  // after each tick's completions, a resource each
  std::vector<std::uint64_t> memory_use;        // summed over ticks
  std::uint64_t finished = 0;
  std::optional<std::uint32_t> out_of_memory;
};

struct Block {
  std::size_t kernel;
  float left;
};

struct Sm {
  std::vector<std::uint32_t> used;
  std::vector<Block> blocks;
};

class Reference {
 public:
  Reference(const TbConfig& config, std::string policy, bool of_2020,
            std::vector<std::size_t> memory_field)
      : c_(config), policy_(std::move(policy)), of_2020_(of_2020), field_(std::move(memory_field)) {
    sms_.resize(c_.sm.n_sms);
    for (Sm& sm : sms_) sm.used.assign(c_.sm.max.size(), 0);
    memory_.assign(c_.memory.size(), 0);
    placed_.assign(c_.kernels.size(), 0);
    completed_.assign(c_.kernels.size(), 0);
    out_.first.assign(c_.kernels.size(), ~0U);
    out_.end.assign(c_.kernels.size(), ~0U);
    out_.memory_use.assign(c_.memory.size(), 0);
  }

  Outcome run() {
    std::uint32_t t = 0;
    while (!all_complete() && (c_.max_simtime == 0 || t < c_.max_simtime)) {
      for (std::size_t k = 0; k < c_.kernels.size(); ++k) {
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

 private:
  bool all_complete() const {
    for (std::size_t k = 0; k < c_.kernels.size(); ++k) {
      if (completed_[k] < c_.kernels[k].n_tb) return false;
    }
    return true;
  }

  std::uint32_t request(std::size_t k, std::size_t r) const { return c_.kernel_fields(k)[r]; }
  float share(std::uint64_t used, std::size_t r) const {
    return static_cast<float>(used) / static_cast<float>(c_.sm.max[r]);
  }
  bool fits(const Sm& sm, std::size_t k) const {
    for (std::size_t r = 0; r < c_.sm.n_sched; ++r) {
      if (sm.used[r] + request(k, r) > c_.sm.max[r]) return false;
    }
    return true;
  }
  float fullest(const Sm& sm, std::size_t k, std::size_t resources) const {
    float worst = 0;
    for (std::size_t r = 0; r < resources; ++r) {
      worst = std::max(worst, share(sm.used[r] + request(k, r), r));
    }
    return worst;
  }
  bool smk_allows(const Sm& sm, std::size_t k) const {
    float used[2] = {0, 0};
    float asked[2] = {0, 0};
    for (std::size_t r = 0; r < c_.sm.max.size(); ++r) {
      const std::size_t side = r < c_.sm.n_boundary ? 0 : 1;
      used[side] = std::max(used[side], share(sm.used[r], r));
      asked[side] = std::max(asked[side], share(request(k, r), r));
    }
    return used[0] + asked[0] <= 1.5F && used[1] + asked[1] <= 1.5F;
  }

  int choose(std::size_t k) {
    const int n = static_cast<int>(sms_.size());
    if (policy_ == "rr" || policy_ == "smk" || policy_ == "fua") {
      const Sm& sm = sms_[static_cast<std::size_t>(pointer_)];
      if (ended_ || !fits(sm, k)) return -1;
      if (policy_ == "smk" && !smk_allows(sm, k)) return -1;
      if (policy_ == "fua" && !(fullest(sm, k, c_.sm.max.size()) <= 1.5F)) return -1;
      const int chosen = pointer_;
      pointer_ = (pointer_ + 1) % n;
      ended_ = pointer_ == 0 && policy_ == "rr" && of_2020_;
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
    int best = -1;
    float best_share = 0;
    for (int i = 0; i < n; ++i) {
      const Sm& sm = sms_[static_cast<std::size_t>(i)];
      if (!fits(sm, k)) continue;
      const float f = fullest(sm, k, c_.sm.n_sched);
      if (best < 0 || (policy_ == "bfa" ? f < best_share : f > best_share)) {
        best = i;
        best_share = f;
      }
    }
    return best;
  }

  void schedule(std::uint32_t t) {
    for (std::size_t r = 0; r < c_.sm.n_sched; ++r) {
      std::uint64_t total = 0;
      for (const Sm& sm : sms_) total += sm.used[r];
      if (total == std::uint64_t{c_.sm.max[r]} * sms_.size()) return;
    }
    ended_ = false;
    while (true) {
      const auto at = std::find_if(active_.begin(), active_.end(),
                                   [&](std::size_t k) { return placed_[k] < c_.kernels[k].n_tb; });
      if (at == active_.end()) return;
      const std::size_t k = *at;
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
      sm.blocks.push_back({k, static_cast<float>(c_.kernels[k].duration)});
    }
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

  void execute(std::uint32_t t) {
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
      for (const std::size_t k : done_) {
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
  std::vector<std::size_t> field_;
  std::vector<Sm> sms_;
  std::vector<std::uint32_t> memory_, placed_, completed_;
  std::vector<std::size_t> active_, done_;
  int pointer_ = 0;
  bool ended_ = false;
  Outcome out_;
};

}  // namespace demarc::sim::plain
