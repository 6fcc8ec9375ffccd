// What the SimTBS paper says of Figures 6 to 9, beside what a study of its policies gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "demarc/sim/dispatch/tb_study.hpp"
#include "demarc/sim/published.hpp"

namespace demarc::sim {

// What counts as reproduced.
struct TbLimits {
  double low = 0, high = 0;
};

struct TbClaim {
  std::string name = {};
  const Published* paper = nullptr;  // none: the paper does not say it
  // What the program of May 2020 gave us: a mean over six workloads of its own generator. It is not
  // in the paper.
  std::optional<double> program = {};
  std::optional<Estimate> ours = {};  // none: the study lacks a run that the figure needs
  std::size_t runs = 0;               // behind it
  std::optional<TbLimits> limits = {};
  [[nodiscard]] bool holds() const {
    return ours && limits && ours->mean >= limits->low && ours->mean <= limits->high;
  }
  [[nodiscard]] std::string range() const;  // "2.10 to 2.50", "2 or more"; "" without limits
};

// The claims of the paper first, then the figures that it does not name. A number counts as
// reproduced if one more workload of ours may give it (95 %), or if it is within 2 % of it.
[[nodiscard]] std::vector<TbClaim> tb_claims(const TbStudy& study);

}  // namespace demarc::sim
