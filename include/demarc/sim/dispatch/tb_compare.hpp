// Reads a comparison of dispatch policies: each policy against one baseline, seed by seed. All
// policies get the same workload from the same seed, so that most of the spread between workloads
// falls out of the ratio, and its interval is much narrower than that of the values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/sim/dispatch/tb_study.hpp"

namespace demarc::sim {

struct TbMeasure {
  std::string_view name;   // on the command line
  std::string_view title;  // in tables
  bool less_is_better = false;
  double (*of)(const TbMetrics& metrics) = nullptr;
};
[[nodiscard]] std::span<const TbMeasure> tb_measures();
[[nodiscard]] Result<const TbMeasure*> find_tb_measure(std::string_view name);

inline constexpr std::string_view compare_baseline = "rr-skip";

[[nodiscard]] std::string_view to_string(TbMix mix);

// Which cells of a comparison are meant; 0 means every load or every size.
struct TbSelection {
  TbMix mix = TbMix::uniform;
  std::uint32_t level = 0;
  std::uint32_t sms = 0;
};

// For each seed, a policy's value divided by the baseline's (geometric mean over the selected
// cells). Returns mean and interval over seeds; all zero if there is nothing to compare.
[[nodiscard]] Estimate ratio_to_baseline(const TbStudy& study, const TbSelection& selection,
                                         std::string_view policy, const TbMeasure& measure);

// The policies of the study. Policies that give the same figures in every selected cell are
// grouped.
[[nodiscard]] std::vector<std::vector<std::string>> equal_policies(const TbStudy& study,
                                                                   const TbSelection& selection);

// Loads and machine sizes of the study, ascending.
[[nodiscard]] std::vector<std::uint32_t> study_levels(const TbStudy& study);
[[nodiscard]] std::vector<std::uint32_t> study_sizes(const TbStudy& study);

// Tables for people: every measure over all loads and sizes of a mix, then `measure` by load and
// size.
[[nodiscard]] std::string compare_table(const TbStudy& study, const TbMeasure& measure);

}  // namespace demarc::sim
