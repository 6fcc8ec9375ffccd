// Turns the paper's numbers into claims that hold or do not.
#include <algorithm>
#include <cmath>
#include <limits>

#include "demarc/sim/translation/study.hpp"

namespace demarc::sim::translation {
namespace {

constexpr double any_number = std::numeric_limits<double>::infinity();

using Pick = double (*)(const std::vector<double>&);

class Judge {
 public:
  explicit Judge(const Comparison& comparison) : comparison_(comparison) {}

  [[nodiscard]] const ApplicationResult* find(std::string_view name) const {
    for (const ApplicationResult& app : comparison_.apps) {
      if (app.name == name) return &app;
    }
    return nullptr;
  }
  // The quantity of each of the named applications; none unless all of them ran.
  template <class Quantity>
  [[nodiscard]] std::vector<double> of(std::initializer_list<std::string_view> names,
                                       Quantity quantity) const {
    std::vector<double> values;
    for (const std::string_view name : names) {
      const ApplicationResult* app = find(name);
      if (app == nullptr) return {};
      values.push_back(quantity(*app));
    }
    return values;
  }
  template <class Quantity>
  [[nodiscard]] std::vector<double> of_all(Quantity quantity) const {
    std::vector<double> values;
    for (const ApplicationResult& app : comparison_.apps) values.push_back(quantity(app));
    return values;
  }

  // A number of the paper, within reproduced_within of it.
  void number(std::string name, const Published& paper, const std::vector<double>& values,
              Pick pick, int decimals, std::string fitted = "") {
    claim(std::move(name), paper, values, pick, paper.value * (1 - reproduced_within),
          paper.value * (1 + reproduced_within), decimals, std::move(fitted));
  }
  // A statement of the paper without a number; the limits are ours.
  void claim(std::string name, const Published& paper, const std::vector<double>& values, Pick pick,
             double low, double high, int decimals, std::string fitted = "") {
    if (values.empty()) return;
    claims.push_back({.name = std::move(name),
                      .paper = &paper,
                      .ours = pick(values),
                      .decimals = decimals,
                      .low = low,
                      .high = high,
                      .fitted = std::move(fitted)});
  }
  // What the paper does not say.
  void expectation(std::string name, std::string elsewhere, const std::vector<double>& values,
                   Pick pick, double low, double high, int decimals) {
    if (values.empty()) return;
    claims.push_back({.name = std::move(name),
                      .elsewhere = std::move(elsewhere),
                      .ours = pick(values),
                      .decimals = decimals,
                      .low = low,
                      .high = high});
  }

  std::vector<Claim> claims;

 private:
  const Comparison& comparison_;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}
double least_of(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}
double most_of(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}
double faster(const ApplicationResult& app) {
  return Comparison::speedup(app, 1);
}
double fewer_iommu_percent(const ApplicationResult& app) {
  return 100 * (1 - ratio(app.summaries[1].iommu_accesses, app.summaries[0].iommu_accesses));
}
double walks_ratio(const ApplicationResult& app) {
  return ratio(app.summaries[1].walks(), app.summaries[0].walks());
}
double tlb_points(const ApplicationResult& app) {
  return 100 * std::abs(app.summaries[0].tlb_hit_share() - app.summaries[1].tlb_hit_share());
}
// By how much the misses of the L2 TLBs differ, in per cent. Without such a difference walks D/C
// is 2 - GMMU hits: a GMMU walks for every miss, the IOMMU for every one that the GMMU lacks.
double miss_difference_percent(const ApplicationResult& app) {
  return 100 * std::abs(ratio(app.summaries[1].l2_tlb.misses, app.summaries[0].l2_tlb.misses) - 1);
}

// Differences below this are none: "better" means more.
constexpr double least_difference = 0.01;

// By how much less time the centralised architecture takes.
double ahead_percent(const ApplicationResult& app) {
  return 100 * (1 - faster(app));
}
double more_walks_percent(const ApplicationResult& app) {
  return 100 * (walks_ratio(app) - 1);
}
double least_tlb_hits_percent(const ApplicationResult& app) {
  return 100 * std::min(app.summaries[0].tlb_hit_share(), app.summaries[1].tlb_hit_share());
}
double iommu_share_percent(const ApplicationResult& app) {
  return 100 * (1 - app.summaries[1].gmmu_hit_share());
}

bool has_fitted_tlb(const Settings& settings) {
  const Settings defaults;
  return settings.l2_tlb_sets == defaults.l2_tlb_sets &&
         settings.l2_tlb_ways == defaults.l2_tlb_ways;
}

void judge_speed(Judge& judge, bool all, const std::string& split) {
  namespace paper = translation_paper;
  if (all) {
    judge.number("D over C, mean of all", paper::mean_speedup, judge.of_all(faster), mean_of, 2,
                 split);
  }
  judge.number("KM: D over C", paper::km_speedup, judge.of({"KM"}, faster), mean_of, 2, split);
  judge.number("ST: D over C", paper::st_speedup, judge.of({"ST"}, faster), mean_of, 2, split);
  judge.number("RL, FIR, MP: C ahead by, mean, %", paper::ahead_in_three,
               judge.of({"RL", "FIR", "MP"}, ahead_percent), mean_of, 1, split);
  judge.claim("RL, FIR, MP: C ahead by, least, %", paper::better_in_three,
              judge.of({"RL", "FIR", "MP"}, ahead_percent), least_of, 100 * least_difference,
              any_number, 1, split);
  judge.claim("PR, MT, KM, FFT, ST: D over C, least", paper::better_in_five,
              judge.of({"PR", "MT", "KM", "FFT", "ST"}, faster), least_of, 1 + least_difference,
              any_number, 2, split);
}

void judge_hits(Judge& judge, const std::string& tlb) {
  namespace paper = translation_paper;
  judge.claim("TLB-hit shares of C and D differ by at most, points", paper::same_hits,
              judge.of_all(tlb_points), most_of, 0, 2, 1, tlb);
  judge.claim("TLB hits, least, %", paper::nearly_all_hit, judge.of_all(least_tlb_hits_percent),
              least_of, 50, 100, 1);
  judge.claim("FIR, MP, AES, FFT: TLB hits, least, %", paper::high_hits,
              judge.of({"FIR", "MP", "AES", "FFT"}, least_tlb_hits_percent), least_of, 98, 100, 1);
}

void judge_walks(Judge& judge, bool all, const std::string& split, const std::string& tlb) {
  namespace paper = translation_paper;
  judge.number("MT, KM, FFT, ST: fewer IOMMU accesses, mean, %", paper::fewer_iommu,
               judge.of({"MT", "KM", "FFT", "ST"}, fewer_iommu_percent), mean_of, 1,
               split.empty() ? "" : split + ", mt_multiple");
  judge.number("ST: fewer IOMMU accesses, %", paper::fewer_iommu_st,
               judge.of({"ST"}, fewer_iommu_percent), mean_of, 1, tlb);
  judge.claim("RL, FIR, MP: L2-TLB misses that go to the IOMMU, least, %", paper::three_at_iommu,
              judge.of({"RL", "FIR", "MP"}, iommu_share_percent), least_of, 90, 100, 1);
  judge.number("RL, FIR, MP: walks D/C, least", paper::double_walks,
               judge.of({"RL", "FIR", "MP"}, walks_ratio), least_of, 2);
  if (all) {
    judge.number("more walks in D, mean of all, %", paper::more_walks,
                 judge.of_all(more_walks_percent), mean_of, 0, split);
  }
}

void judge_the_rest(Judge& judge, const Comparison& comparison) {
  judge.expectation("AES: D over C", "about 1: named on neither side (inferred)",
                    judge.of({"AES"}, faster), mean_of, 0.95, 1.05, 2);
  judge.expectation("L2-TLB misses of C and D differ by at most, %",
                    "none: hits are nearly the same (inferred)",
                    judge.of_all(miss_difference_percent), most_of, 0, 5, 1);
  if (comparison.architectures.size() < 3) return;
  judge.expectation("bypass against the better of C and D, least", "1: our aim",
                    judge.of_all([](const ApplicationResult& app) {
                      return ratio(std::min(app.summaries[0].cycles, app.summaries[1].cycles).raw(),
                                   app.summaries[2].cycles.raw());
                    }),
                    least_of, 0.98, any_number, 3);
  const double best = std::max(1.0, comparison.mean_speedup(1));  // C over itself is 1
  judge.expectation("bypass over the better mean of C and D",
                    "1.06 over D (another design: Wei et al., NPC 2020)",
                    {comparison.mean_speedup(2) / best}, mean_of, 1.0, any_number, 3);
}

}  // namespace

std::string Claim::shown() const {
  std::string text = fmt::format("{:.{}f}", ours, decimals);
  if (text.front() == '-' && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

std::string Claim::range() const {
  if (high == any_number) return fmt::format("{:.{}f} or more", low, decimals);
  return fmt::format("{:.{}f} to {:.{}f}", low, decimals, high, decimals);
}

const Published* published_speedup(std::string_view app) {
  if (app == "KM") return &translation_paper::km_speedup;
  if (app == "ST") return &translation_paper::st_speedup;
  return nullptr;
}

std::vector<Claim> claims_of(const Comparison& comparison) {
  if (comparison.architectures.size() < 2) return {};
  Judge judge(comparison);
  const bool all = comparison.apps.size() == application_table().size();
  const std::string split = comparison.settings.split == Split::native ? "split" : "";
  const std::string tlb = has_fitted_tlb(comparison.settings) ? "l2_tlb_sets" : "";
  judge_speed(judge, all, split);
  judge_hits(judge, tlb);
  judge_walks(judge, all, split, tlb);
  judge_the_rest(judge, comparison);
  return std::move(judge.claims);
}

std::string fitted_text(const Comparison& comparison) {
  const Settings& settings = comparison.settings;
  std::string text;
  if (has_fitted_tlb(settings)) {
    text += fmt::format(
        "fitted: l2_tlb_sets={} and l2_tlb_ways={}, to ST's IOMMU accesses and to TLB hits\n",
        settings.l2_tlb_sets, settings.l2_tlb_ways);
  }
  if (settings.split == Split::native) {
    text += fmt::format(
        "fitted: split=native ({}), chosen when the paper's figures were known: KM, ST and all "
        "means follow from it\n",
        splits_of_applications(comparison));
  }
  return text;
}

}  // namespace demarc::sim::translation
