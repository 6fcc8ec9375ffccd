// Judges what the SimTBS paper says by the runs of a study.
#include "demarc/sim/dispatch/tb_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace demarc::sim {
namespace {

namespace paper = simtbs_paper;

constexpr double any_number = std::numeric_limits<double>::infinity();

enum Line : std::size_t { rr, bfa, dfa, rr_without_stop, rr_that_skips };  // of paper_lines

double antt(const TbMetrics& run) {
  return run.antt_queue;
}
double use(const TbMetrics& run) {
  return run.utilization[0];
}

struct Wanted {
  Line line;
  TbMix mix;
  std::uint32_t level;
};
using Value = double (*)(const TbMetrics&);
using Joined = std::function<double(const std::vector<double>&)>;

double first_of(const std::vector<double>& values) {
  return values.front();
}

class Figures {
 public:
  explicit Figures(const TbStudy& study) : study_(study) {}

  // One value for each workload, from the runs of all wanted cells on it; none if a run is missing.
  [[nodiscard]] std::vector<double> samples(const std::vector<Wanted>& wanted, Value value,
                                            const Joined& joined) const {
    std::vector<const TbCell*> cells;
    cells.reserve(wanted.size());
    for (const Wanted& one : wanted) {
      const TbCell* cell = study_.find(paper_lines.at(one.line), one.mix, one.level);
      // Cells without all of their runs cannot be joined workload by workload.
      if (cell == nullptr || (wanted.size() > 1 && cell->runs.size() != study_.runs)) return {};
      cells.push_back(cell);
    }
    std::vector<double> samples;
    samples.reserve(cells.front()->runs.size());
    for (std::size_t run = 0; run < cells.front()->runs.size(); ++run) {
      std::vector<double> values;
      values.reserve(cells.size());
      for (const TbCell* cell : cells) values.push_back(value(cell->runs[run]));
      samples.push_back(joined(values));
    }
    return samples;
  }
  [[nodiscard]] TbClaim figure(std::string name, std::optional<double> program,
                               const std::vector<Wanted>& wanted, Value value,
                               const Joined& joined = first_of) const {
    TbClaim claim{.name = std::move(name), .program = program};
    const std::vector<double> found = samples(wanted, value, joined);
    claim.runs = found.size();
    if (!found.empty()) claim.ours = estimate(found);
    return claim;
  }

 private:
  const TbStudy& study_;
};

// A number of the paper: it is what one more of our workloads may give, or within 2 % of it.
TbClaim number(const Published& said, TbClaim claim) {
  claim.paper = &said;
  if (claim.ours) {
    const double more =
        (claim.ours->high - claim.ours->mean) * std::sqrt(static_cast<double>(claim.runs) + 1);
    const double within = std::max(more, 0.02 * said.value);
    claim.limits = TbLimits{said.value - within, said.value + within};
  }
  return claim;
}
// A statement without a number of its own; the limits are ours.
TbClaim statement(const Published& said, TbLimits limits, TbClaim claim) {
  claim.paper = &said;
  claim.limits = limits;
  return claim;
}

double largest_of(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}
double largest_over_smallest(const std::vector<double>& values) {
  return largest_of(values) / *std::min_element(values.begin(), values.end());
}
double first_over_second(const std::vector<double>& values) {
  return values[0] / values[1];
}
double first_over_better(const std::vector<double>& values) {
  return values[0] / std::min(values[1], values[2]);
}
// For the first against the mean of the other two.
double percent_more(const std::vector<double>& values) {
  return 100 * (values[0] / ((values[1] + values[2]) / 2) - 1);
}
double percent_less(const std::vector<double>& values) {
  return -percent_more(values);
}
double points_less(const std::vector<double>& values) {
  return (values[1] + values[2]) / 2 - values[0];
}

std::vector<Wanted> three_at(std::uint32_t level) {
  return {{rr, TbMix::uniform, level}, {bfa, TbMix::uniform, level}, {dfa, TbMix::uniform, level}};
}

// DFA under the extreme mix at every load of the study up to 120 %.
std::vector<Wanted> dfa_up_to_120(const TbStudy& study) {
  std::vector<Wanted> wanted{{dfa, TbMix::extreme, 120}};
  for (const TbCell& cell : study.cells) {
    if (cell.line() == paper_lines[dfa] && cell.mix == TbMix::extreme && cell.level < 120)
      wanted.push_back({dfa, TbMix::extreme, cell.level});
  }
  return wanted;
}

void add_paper(std::vector<TbClaim>& claims, const TbStudy& study) {
  const Figures f(study);
  const auto uniform = [](Line line, std::uint32_t level) {
    return std::vector<Wanted>{{line, TbMix::uniform, level}};
  };
  claims = {statement(paper::equal_at_10, {1, 1.05},
                      f.figure("Figure 6: ANTT at 10 %, largest of RR, BFA, DFA over smallest",
                               1.05, three_at(10), antt, largest_over_smallest)),
            number(paper::rr_at_80,
                   f.figure("Figure 6: ANTT of RR at 80 %", 2.23, uniform(rr, 80), antt)),
            number(paper::rr_takes_more_at_80,
                   f.figure("Figure 6: ANTT of RR at 80 % above BFA and DFA by, %", 62,
                            three_at(80), antt, percent_more)),
            statement(paper::use_at_low_load, {-1, 1},
                      f.figure("Figure 7: SM use of RR at 10 % below BFA and DFA by, points", {},
                               three_at(10), use, points_less)),
            number(paper::use_at_high_load,
                   f.figure("Figure 7: SM use of RR at 80 % below BFA and DFA by, %", {},
                            three_at(80), use, percent_less)),
            number(paper::bfa_use_at_125,
                   f.figure("Figure 8: SM use of BFA at 125 %", 76.9, uniform(bfa, 125), use)),
            number(paper::dfa_use_at_125,
                   f.figure("Figure 8: SM use of DFA at 125 %", 77.2, uniform(dfa, 125), use)),
            statement(paper::dfa_beats_bfa, {1.02, any_number},
                      f.figure("Figure 8: ANTT of BFA over DFA at 125 %", 2.03,
                               {{bfa, TbMix::uniform, 125}, {dfa, TbMix::uniform, 125}}, antt,
                               first_over_second)),
            statement(paper::dfa_to_120, {1, paper::dfa_to_120.value},
                      f.figure("Figure 9: ANTT of DFA, largest up to 120 %", {},
                               dfa_up_to_120(study), antt, largest_of)),
            statement(paper::bfa_rises, {2, any_number},
                      f.figure("Figure 9: ANTT of BFA at 120 % over that at 100 %", {},
                               {{bfa, TbMix::extreme, 120}, {bfa, TbMix::extreme, 100}}, antt,
                               first_over_second)),
            number(paper::dfa_use_at_120, f.figure("Figure 9: SM use of DFA at 120 %", 83,
                                                   {{dfa, TbMix::extreme, 120}}, use)),
            statement(paper::twice_as_good, {paper::twice_as_good.value, any_number},
                      f.figure("Section IV: ANTT of RR over the better of BFA and DFA at 80 %",
                               1.65, three_at(80), antt, first_over_better))};
}

// Figures that are only drawn in the paper, or not there at all.
void add_others(std::vector<TbClaim>& claims, const TbStudy& study) {
  const Figures f(study);
  const auto add = [&](const char* name, std::optional<double> program, Line line, TbMix mix,
                       std::uint32_t level, Value value) {
    claims.push_back(f.figure(name, program, {{line, mix, level}}, value));
  };
  add("ANTT of RR at 10 %", 1.34, rr, TbMix::uniform, 10, antt);
  add("ANTT of BFA at 10 %", 1.28, bfa, TbMix::uniform, 10, antt);
  add("ANTT of DFA at 10 %", 1.33, dfa, TbMix::uniform, 10, antt);
  add("ANTT of BFA at 80 %", 1.40, bfa, TbMix::uniform, 80, antt);
  add("ANTT of DFA at 80 %", 1.35, dfa, TbMix::uniform, 80, antt);
  add("ANTT of RR without the stop at the wrap, 80 %", {}, rr_without_stop, TbMix::uniform, 80,
      antt);
  add("ANTT of a round robin that skips full SMs, 80 %", {}, rr_that_skips, TbMix::uniform, 80,
      antt);
  for (const std::uint32_t level : {100U, 110U}) {
    claims.push_back(f.figure(fmt::format("SM use of RR at {} % below BFA and DFA by, %", level),
                              {}, three_at(level), use, percent_less));
  }
  claims.push_back(f.figure("ANTT of RR over the better of BFA and DFA at 100 %", {}, three_at(100),
                            antt, first_over_better));
  add("ANTT of BFA at 125 %", 7.9, bfa, TbMix::uniform, 125, antt);
  add("ANTT of DFA at 125 %", 3.9, dfa, TbMix::uniform, 125, antt);
  add("ANTT of BFA at 120 %, extreme mix", 11.6, bfa, TbMix::extreme, 120, antt);
  add("ANTT of DFA at 120 %, extreme mix", 2.3, dfa, TbMix::extreme, 120, antt);
}

}  // namespace

std::string TbClaim::range() const {
  if (!limits) return "";
  if (limits->high == any_number) return fmt::format("{:.3g} or more", limits->low);
  return fmt::format("{:.3g} to {:.3g}", limits->low, limits->high);
}

std::vector<TbClaim> tb_claims(const TbStudy& study) {
  std::vector<TbClaim> claims;
  add_paper(claims, study);
  add_others(claims, study);
  return claims;
}

}  // namespace demarc::sim
