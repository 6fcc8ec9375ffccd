// What the SimTBS paper says, judged by made-up runs: every figure, and its limits.
#include "demarc/sim/dispatch/tb_claims.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace demarc::sim {
namespace {

// Every line, mix and load of the study, one run each. ANTT counts the load, the line and the mix.
TbStudy made_up() {
  TbStudy study;
  study.runs = 1;
  double line_number = 0;
  for (const TbLine& line : paper_lines) {
    line_number += 1;
    for (const TbMix mix : {TbMix::uniform, TbMix::extreme}) {
      for (const std::uint32_t level : {10U, 80U, 100U, 110U, 120U, 125U}) {
        TbCell cell;
        cell.model = line.model;
        cell.policy_rules = line.policy_rules;
        cell.policy = line.policy;
        cell.mix = mix;
        cell.level = level;
        TbMetrics run;
        run.antt = 100;
        run.antt_queue = level / 100.0 + 10 / line_number + (mix == TbMix::extreme ? 0.5 : 0);
        run.utilization = {level / 2.0 + line_number};
        run.utilization_full = {1};
        cell.runs = {run};
        study.cells.push_back(cell);
      }
    }
  }
  return study;
}

std::string text_of(const std::vector<TbClaim>& claims) {
  std::string text;
  for (const TbClaim& claim : claims) {
    text += fmt::format("{}: {:.4g}", claim.name, claim.ours ? claim.ours->mean : -1);
    if (claim.limits)
      text += fmt::format(" {} of {}", claim.holds() ? "holds" : "-", claim.range());
    text += "\n";
  }
  return text;
}

constexpr const char* kept_figures =
    R"(Figure 6: ANTT at 10 %, largest of RR, BFA, DFA over smallest: 2.942 - of 1 to 1.05
Figure 6: ANTT of RR at 80 %: 10.8 - of 2.25 to 2.35
Figure 6: ANTT of RR at 80 % above BFA and DFA by, %: 117.4 - of 68.6 to 71.4
Figure 7: SM use of RR at 10 % below BFA and DFA by, points: 1.5 - of -1 to 1
Figure 7: SM use of RR at 80 % below BFA and DFA by, %: 3.529 - of 7.64 to 7.96
Figure 8: SM use of BFA at 125 %: 64.5 - of 74.6 to 77.6
Figure 8: SM use of DFA at 125 %: 65.5 - of 74.9 to 77.9
Figure 8: ANTT of BFA over DFA at 125 %: 1.364 holds of 1.02 or more
Figure 9: ANTT of DFA, largest up to 120 %: 5.033 - of 1 to 4
Figure 9: ANTT of BFA at 120 % over that at 100 %: 1.031 - of 2 or more
Figure 9: SM use of DFA at 120 %: 63 - of 85.2 to 88.6
Section IV: ANTT of RR over the better of BFA and DFA at 80 %: 2.613 holds of 2 or more
ANTT of RR at 10 %: 10.1
ANTT of BFA at 10 %: 5.1
ANTT of DFA at 10 %: 3.433
ANTT of BFA at 80 %: 5.8
ANTT of DFA at 80 %: 4.133
ANTT of RR without the stop at the wrap, 80 %: 3.3
ANTT of a round robin that skips full SMs, 80 %: 2.8
SM use of RR at 100 % below BFA and DFA by, %: 2.857
SM use of RR at 110 % below BFA and DFA by, %: 2.609
ANTT of RR over the better of BFA and DFA at 100 %: 2.538
ANTT of BFA at 125 %: 6.25
ANTT of DFA at 125 %: 4.583
ANTT of BFA at 120 %, extreme mix: 6.7
ANTT of DFA at 120 %, extreme mix: 5.033
)";

TEST(TbClaims, are_of_the_lines_mixes_and_loads_that_they_name) {
  EXPECT_EQ(text_of(tb_claims(made_up())), kept_figures);
}

TEST(TbClaims, that_compare_policies_need_the_same_workloads_of_each) {
  TbStudy study = made_up();
  study.runs = 2;
  const auto claims = tb_claims(study);
  EXPECT_FALSE(claims[0].ours) << "one of two runs";
  EXPECT_TRUE(claims[1].ours) << "of one policy alone";
  study.cells.clear();
  for (const TbClaim& claim : tb_claims(study)) {
    EXPECT_FALSE(claim.ours) << claim.name;
    EXPECT_FALSE(claim.holds()) << claim.name;
  }
  EXPECT_EQ(reproduced_text(tb_claims(study)), "0 of 12");
}

TEST(TbClaims, of_several_runs_are_means_over_workloads_and_allow_for_one_more) {
  TbStudy study = made_up();
  study.runs = 3;
  for (TbCell& cell : study.cells) {
    cell.runs.resize(3, cell.runs.front());
    cell.runs[1].antt_queue *= 1.1;
    cell.runs[2].antt_queue *= 0.9;
  }
  const auto claims = tb_claims(study);
  // The same factor in all three: RR over the others does not change.
  EXPECT_NEAR(claims[2].ours->low, claims[2].ours->high, 1e-9);
  EXPECT_EQ(claims[2].runs, 3U);
  // RR at 80 % is 10.8, 11.88 and 9.72: its interval is 4.303 * 1.08 / sqrt(3), one more twice
  // that.
  EXPECT_NEAR(claims[1].limits->high, 2.3 + 2 * 4.3027 * 1.08 / std::sqrt(3.0), 1e-3);
  EXPECT_NEAR(claims[1].limits->low, 2.3 - 2 * 4.3027 * 1.08 / std::sqrt(3.0), 1e-3);
}

}  // namespace
}  // namespace demarc::sim
