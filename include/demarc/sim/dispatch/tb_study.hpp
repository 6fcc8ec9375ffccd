// Studies of dispatch policies over generated workloads: many seeds, loads, mixes and machine
// sizes, on all cores, with the same result on any number of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
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

// A policy under some rules.
struct TbLine {
  TbModel model = TbModel::simtbs_2020;
  TbModel policy_rules = TbModel::simtbs_2020;  // TbOptions::policy_rules
  std::string_view policy;
  std::string_view name;  // on charts
  friend bool operator==(const TbLine& a, const TbLine& b) {
    return a.model == b.model && a.policy_rules == b.policy_rules && a.policy == b.policy;
  }
};

// The three policies of the paper, and its round robin with two faults removed one after the other:
// one does not stop at the wrap, one also skips full SMs.
inline constexpr std::array<TbLine, 5> paper_lines = {
    {{TbModel::simtbs_2020, TbModel::simtbs_2020, "rr", "RR"},
     {TbModel::simtbs_2020, TbModel::simtbs_2020, "bfa", "BFA"},
     {TbModel::simtbs_2020, TbModel::simtbs_2020, "dfa", "DFA"},
     {TbModel::simtbs_2020, TbModel::simtbs, "rr", "RR without the stop"},
     {TbModel::simtbs_2020, TbModel::simtbs, "rr-skip", "RR that skips"}}};

// One setting, run once per seed.
struct TbCell {
  TbModel model = TbModel::simtbs_2020;
  TbModel policy_rules = TbModel::simtbs_2020;  // TbOptions::policy_rules
  TbGeneration generation = TbGeneration::published_2020;
  TbMix mix = TbMix::uniform;
  std::string policy;
  std::uint32_t level = 0;  // per cent, nominal
  std::uint32_t sms = 16;
  std::vector<TbMetrics> runs;  // one per seed; none if a run ended out of memory

  [[nodiscard]] TbLine line() const { return {model, policy_rules, policy, {}}; }
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
  // The user's own workloads, all for one machine, in place of generated ones. Each is one run. If
  // one has no kernels, they are drawn from its *workload section, one run per seed.
  std::vector<TbConfig> workloads;
};

struct TbStudy {
  TbStudyOptions options;
  std::size_t runs = 0;  // per cell: seeds, or workloads
  std::vector<TbCell> cells;
  // Nothing when the study has no such cell.
  [[nodiscard]] const TbCell* find(const TbLine& line, TbMix mix, std::uint32_t level,
                                   std::uint32_t sms = 16) const;
};

// Figures 6-9 of the SimTBS paper with its own rules, machine and workloads (simtbs-2020), and the
// same workloads under every one of paper_lines.
[[nodiscard]] Result<TbStudy> reproduce_paper(const TbStudyOptions& options,
                                              const Progress& progress = {});

// Runs every policy over loads, mixes and sizes. Both studies return an error if the given
// workloads are not of one machine, or if generated kernels are asked for besides them.
[[nodiscard]] Result<TbStudy> compare_policies(const TbStudyOptions& options,
                                               const Progress& progress = {});

[[nodiscard]] std::string study_json(const TbStudy& study);  // schema demarc.schedule.study/1
[[nodiscard]] std::string study_table(const TbStudy& study);

}  // namespace demarc::sim
