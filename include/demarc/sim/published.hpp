// Numbers and statements of the papers, each with the place where it stands. What Demarc shows in a
// column "paper" is one of these and nothing else. Means of our own runs, inferences and figures of
// other papers have columns of their own.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace demarc::sim {

struct Published {
  std::string_view words;  // what the paper says: "about 2.3", "below 4", "no difference"
  double value = 0;        // the number in the words; 0 if they name none
  std::string_view place;  // "section III, Figure 6"

  // A statement without words or without a place does not compile.
  consteval Published(std::string_view said, double number, std::string_view where)
      : words(said), value(number), place(where) {
    if (said.empty() || where.empty()) throw "a published number has words and a place";
  }
};

// "9 of 12": how many claims of the paper hold. Claims without a `paper` are not its own.
template <class Claim>
[[nodiscard]] std::string reproduced_text(const std::vector<Claim>& claims) {
  std::size_t of_the_paper = 0;
  std::size_t holding = 0;
  for (const Claim& claim : claims) {
    if (claim.paper == nullptr) continue;
    ++of_the_paper;
    holding += claim.holds() ? 1U : 0U;
  }
  return fmt::format("{} of {}", holding, of_the_paper);
}

// SimTBS: Cho and Bahn, JIIBC 20(4), 2020. Figures 6 to 9 are pictures; the text has these.
namespace simtbs_paper {
inline constexpr Published equal_at_10{"no difference", 1, "section III, Figure 6"};
inline constexpr Published rr_at_80{"about 2.3", 2.3, "section III, Figure 6"};
inline constexpr Published rr_takes_more_at_80{"about 70 %", 70, "section III, Figure 6"};
inline constexpr Published use_at_low_load{"hardly any", 0, "section III, Figure 7"};
inline constexpr Published use_at_high_load{"about 7.8 %", 7.8, "section III, Figure 7"};
inline constexpr Published bfa_use_at_125{"76.1 %", 76.1, "section III, Figure 8"};
inline constexpr Published dfa_use_at_125{"76.4 %", 76.4, "section III, Figure 8"};
inline constexpr Published dfa_beats_bfa{"DFA better", 0, "section III, Figure 8"};
inline constexpr Published dfa_to_120{"below 4", 4, "section III, Figure 9"};
inline constexpr Published bfa_rises{"rises steeply", 0, "section III, Figure 9"};
inline constexpr Published dfa_use_at_120{"86.9 %", 86.9, "section III, Figure 9"};
inline constexpr Published twice_as_good{"at least 2", 2, "section IV"};
}  // namespace simtbs_paper

// Address translation: Wei, Li and Lu, Computer Engineering and Science 43(2), 2021. The bars of
// Figures 4 to 7 and Tables 1 and 2 are not in the text that we have.
namespace translation_paper {
inline constexpr Published mean_speedup{"2.0", 2.0, "section 4.2, Figure 4"};
inline constexpr Published km_speedup{"4.81", 4.81, "section 4.2, Figure 4"};
inline constexpr Published st_speedup{"5.18", 5.18, "section 4.2, Figure 4"};
inline constexpr Published ahead_in_three{"8 %", 8, "section 4.2, Figure 4"};
inline constexpr Published better_in_three{"C better", 0, "section 4.2, Figure 4"};
inline constexpr Published better_in_five{"D better", 0, "section 4.2, Figure 4"};
inline constexpr Published same_hits{"nearly the same", 0, "section 4.2, Figure 5"};
inline constexpr Published nearly_all_hit{"most", 0, "section 4.2, Figure 5"};
inline constexpr Published high_hits{"extremely high", 0, "section 4.2, Figure 5"};
inline constexpr Published fewer_iommu{"68.3 %", 68.3, "section 4.2, Figure 6"};
inline constexpr Published fewer_iommu_st{"90 %", 90, "section 4.2, Figure 6"};
inline constexpr Published three_at_iommu{"nearly all", 0, "section 4.2, Figure 6"};
inline constexpr Published double_walks{"2", 2, "section 4.2, Figure 7"};
inline constexpr Published more_walks{"67 %", 67, "section 4.2, Figure 7"};
}  // namespace translation_paper

}  // namespace demarc::sim
