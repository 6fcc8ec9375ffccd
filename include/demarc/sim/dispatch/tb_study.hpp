// Studies of dispatch policies over generated workloads: many seeds, loads, mixes and machine
// sizes, on all cores, with the same result on any number of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/sim/dispatch/tb_generate.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"

namespace demarc::sim {

// Mean over seeds with its 95 % confidence interval (Student's t).
struct Estimate {
  double mean = 0, low = 0, high = 0;
};
[[nodiscard]] Estimate estimate(const std::vector<double>& samples);

// The paper does not state the capacity of its memory, and no one capacity gives all its figures:
// Figure 6 comes out with the first, Figure 8 with the second, Figure 9 with about the third. The
// curves are drawn with the first. (The 15000 units of the reference configuration overload the
// machine with the paper's requests of 1 to 100.)
inline constexpr std::array<std::uint32_t, 3> paper_memories = {250000, 500000, 1000000};

// One setting, run once a seed.
struct TbCell {
  TbModel model = TbModel::simtbs_2020;
  TbGeneration generation = TbGeneration::published_2020;
  TbMix mix = TbMix::uniform;
  std::string policy;
  std::uint32_t level = 0;  // per cent, nominal
  std::uint32_t sms = 16;
  std::uint32_t memory = 0;     // units; 0: paper_config()'s
  std::vector<TbMetrics> runs;  // a seed each; none when a run ended out of memory

  [[nodiscard]] Estimate antt() const;
  [[nodiscard]] Estimate antt_queue() const;
  [[nodiscard]] Estimate stp() const;
  [[nodiscard]] Estimate utilization() const;       // per cent, without each block's last tick
  [[nodiscard]] Estimate utilization_full() const;  // with it
  [[nodiscard]] Estimate finished_share() const;
  [[nodiscard]] Estimate fairness() const;
  [[nodiscard]] Estimate neighbours_together() const;
};

struct TbStudyOptions {
  std::uint32_t seeds = 10;
  std::uint64_t first_seed = 1;
  std::uint32_t ticks = 10000;
  unsigned threads = 0;               // 0: all cores
  std::vector<std::uint32_t> sizes;   // SMs; compare_policies() only
  std::vector<std::uint32_t> levels;  // per cent; compare_policies() only
};

struct TbStudy {
  TbStudyOptions options;
  std::vector<TbCell> cells;
  // Nothing when the study has no such cell. `memory` 0: the first one with any.
  [[nodiscard]] const TbCell* find(TbModel model, TbMix mix, std::string_view policy,
                                   std::uint32_t level, std::uint32_t sms = 16,
                                   std::uint32_t memory = 0) const;
};

// Figures 6-9 of the SimTBS paper with its own rules (simtbs-2020), and the same workloads with
// what is wrong there taken away step by step: rr that no longer ends a tick at the wrap (simtbs),
// round robin that skips full SMs (rr-skip). The points that the paper gives as numbers are there
// for each of paper_memories.
[[nodiscard]] Result<TbStudy> reproduce_paper(const TbStudyOptions& options,
                                              const Progress& progress = {});

// Every policy over loads, mixes and sizes.
[[nodiscard]] Result<TbStudy> compare_policies(const TbStudyOptions& options,
                                               const Progress& progress = {});

[[nodiscard]] std::string study_json(const TbStudy& study);  // schema demarc.schedule.study/1
[[nodiscard]] std::string study_table(const TbStudy& study);

}  // namespace demarc::sim
