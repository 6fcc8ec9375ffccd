// The thread blocks on the SMs and the work they have left. Blocks of one kernel placed on one SM
// in one tick share a state, so memory follows the occupancy, not the workload.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace demarc::sim {

// A vector of `lanes` remaining-work values of one SM in which the bits of `mask` completed.
struct CompletionHit {
  std::uint32_t sm;
  std::uint32_t lane;  // of the first value, within the SM
  std::uint32_t mask;
};

class Residents {
 public:
  static constexpr std::uint32_t lanes = 8;

  explicit Residents(std::uint32_t n_sms);

  struct Group {
    std::uint32_t kernel;
    std::uint32_t placed_tick;
    std::uint32_t blocks;
  };

  [[nodiscard]] std::uint64_t groups() const { return groups_; }

  // One block of `kernel` with `work` left, placed in `tick`.
  void add(std::uint32_t sm, std::uint32_t kernel, std::uint32_t tick, float work) {
    const std::uint32_t count = count_[sm];
    const std::size_t base = sm * stride_;
    if (count > 0) {
      Group& last = group_[base + count - 1];
      if (last.kernel == kernel && last.placed_tick == tick) {
        ++last.blocks;
        return;
      }
    }
    if (count == stride_) {
      widen();
      add(sm, kernel, tick, work);
      return;
    }
    work_[base + count] = work;
    group_[base + count] = {kernel, tick, 1};
    count_[sm] = count + 1;
    ++groups_;
  }

  [[nodiscard]] const Group& group(std::uint32_t sm, std::uint32_t lane) const {
    return group_[sm * stride_ + lane];
  }

  // Takes one group out; the last of the SM moves into its place. Within an SM, remove from the
  // highest lane down.
  void remove(std::uint32_t sm, std::uint32_t lane) {
    const std::size_t base = sm * stride_;
    const std::uint32_t last = --count_[sm];
    work_[base + lane] = work_[base + last];
    group_[base + lane] = group_[base + last];
    work_[base + last] = nothing;
    --groups_;
  }

  // work -= step[sm] for every group; where that leaves nothing, a hit. Hits come SM by SM, lanes
  // rising. The result is valid until the next call.
  [[nodiscard]] const std::vector<CompletionHit>& advance(const float* step,
                                                          std::size_t& hit_count);

  [[nodiscard]] const std::vector<float>& work() const { return work_; }
  [[nodiscard]] bool empty(std::uint32_t sm) const { return count_[sm] == 0; }

 private:
  static constexpr float nothing = std::numeric_limits<float>::infinity();
  void widen();

  std::uint32_t n_sms_;
  std::uint32_t stride_ = lanes;  // groups an SM has room for; grows
  std::uint64_t groups_ = 0;
  std::vector<float> work_;  // [sm][stride], `nothing` beyond count
  std::vector<Group> group_;
  std::vector<std::uint32_t> count_;
  std::vector<CompletionHit> hits_;
};

// step[i] = 1 / (1 + (sm_cost[i] + memory_cost)), in single precision.
void compute_steps(const float* sm_cost, float memory_cost, float* step, std::size_t count);

}  // namespace demarc::sim
