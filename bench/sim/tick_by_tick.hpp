// The straightforward implementation of the SimTBS rules that the benchmark compares with: every
// thread block an object, every tick every block and every SM, every table walked anew.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "demarc/sim/dispatch/tb_simulation.hpp"

namespace demarc::bench {

struct PlainBlock {
  sim::KernelIndex kernel;
  float left = 0;
};

struct PlainSm {
  std::vector<std::uint32_t> used;
  std::vector<std::unique_ptr<PlainBlock>> blocks;
};

struct PlainResult {
  std::uint64_t placed = 0;
  std::uint64_t finished = 0;
  std::uint64_t sm_use = 0;
  PerIndex<sim::KernelIndex, sim::TbTicks> end;  // last completion
};

class TickByTick {
 public:
  TickByTick(const sim::TbConfig& config, bool breadth_first)
      : config_(config), breadth_first_(breadth_first), sms_(config.sm.n_sms) {
    for (PlainSm& sm : sms_) sm.used.resize(config.resources());
    memory_.resize(config.memory.size());
    left_.resize(config.kernels.size());
    for (const sim::KernelIndex k : left_.keys()) left_[k] = config.kernels[k].n_tb;
    result_.end.resize(config.kernels.size(), sim::KernelOutcome::never);
  }

  PlainResult run(sim::TbTicks ticks) {
    for (sim::TbTicks t; t < ticks; ++t) {
      while (arrived_ < config_.kernels.next_key() && config_.kernels[arrived_].start == t) {
        ++arrived_;
      }
      dispatch();
      execute(t);
      for (const PlainSm& sm : sms_) result_.sm_use += sm.used[0];
    }
    return std::move(result_);
  }

 private:
  bool fits(const PlainSm& sm, const std::uint32_t* request) const {
    for (std::size_t r = 0; r < config_.sm.n_sched; ++r) {
      if (sm.used[r] + request[r] > config_.sm.max[r]) return false;
    }
    return true;
  }

  std::size_t choose(const std::uint32_t* request) {
    if (!breadth_first_) {
      if (!fits(sms_[next_], request)) return sms_.size();
      const std::size_t sm = next_;
      next_ = (next_ + 1) % sms_.size();
      return sm;
    }
    std::size_t best = sms_.size();
    float least = 0;
    for (std::size_t s = 0; s < sms_.size(); ++s) {
      if (!fits(sms_[s], request)) continue;
      float worst = 0;
      for (std::size_t r = 0; r < config_.sm.n_sched; ++r) {
        worst = std::max(worst, static_cast<float>(sms_[s].used[r] + request[r]) /
                                    static_cast<float>(config_.sm.max[r]));
      }
      if (best == sms_.size() || worst < least) {
        best = s;
        least = worst;
      }
    }
    return best;
  }

  void dispatch() {
    if (head_ == arrived_) return;
    for (std::size_t r = 0; r < config_.sm.n_sched; ++r) {
      std::uint64_t total = 0;
      for (const PlainSm& sm : sms_) total += sm.used[r];
      if (total == std::uint64_t{config_.sm.max[r]} * sms_.size()) return;
    }
    while (head_ < arrived_) {
      const auto fields = config_.kernel_fields(head_);
      const std::size_t s = choose(fields.data());
      if (s == sms_.size()) return;
      for (std::size_t r = 0; r < config_.resources(); ++r) sms_[s].used[r] += fields[r];
      for (std::size_t m = 0; m < memory_.size(); ++m) {
        memory_[m] += fields[config_.resources() + m];
      }
      sms_[s].blocks.push_back(std::make_unique<PlainBlock>(
          PlainBlock{head_, static_cast<float>(config_.kernels[head_].duration.raw())}));
      ++result_.placed;
      if (++placed_ == config_.kernels[head_].n_tb) {
        placed_ = 0;
        ++head_;
      }
    }
  }

  void execute(sim::TbTicks t) {
    float memory_cost = 0;
    for (std::size_t m = 0; m < memory_.size(); ++m) {
      memory_cost += config_.memory_overhead.cost(
          m, static_cast<float>(memory_[m]) / static_cast<float>(config_.memory[m]));
    }
    for (PlainSm& sm : sms_) {
      float sm_cost = 0;
      for (std::size_t r = 0; r < config_.sm.n_sched; ++r) {
        if (sm.used[r] == 0) continue;
        sm_cost += config_.sm_overhead.cost(
            r, static_cast<float>(sm.used[r]) / static_cast<float>(config_.sm.max[r]));
      }
      for (std::size_t i = 0; i < sm.blocks.size();) {
        PlainBlock& block = *sm.blocks[i];
        block.left = block.left - 1.0F / (1.0F + (sm_cost + memory_cost));
        if (block.left > 0) {
          ++i;
          continue;
        }
        const auto fields = config_.kernel_fields(block.kernel);
        for (std::size_t r = 0; r < config_.resources(); ++r) sm.used[r] -= fields[r];
        for (std::size_t m = 0; m < memory_.size(); ++m) {
          memory_[m] -= fields[config_.resources() + m];
        }
        ++result_.finished;
        if (--left_[block.kernel] == 0) result_.end[block.kernel] = t;
        sm.blocks.erase(sm.blocks.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  const sim::TbConfig& config_;
  bool breadth_first_;
  std::vector<PlainSm> sms_;
  std::vector<std::uint32_t> memory_;
  PerIndex<sim::KernelIndex, std::uint32_t> left_;
  sim::KernelIndex head_, arrived_;
  std::size_t next_ = 0;
  std::uint32_t placed_ = 0;
  PlainResult result_;
};

}  // namespace demarc::bench
