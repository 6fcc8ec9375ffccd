// Turns the paper's numbers into claims that hold or do not.
#include <algorithm>
#include <cmath>
#include <limits>

#include "demarc/sim/translation/study.hpp"

namespace demarc::sim::translation {
namespace {

constexpr double any_number = std::numeric_limits<double>::infinity();

class Judge {
 public:
  explicit Judge(const Comparison& comparison) : comparison_(comparison) {}

  [[nodiscard]] const ApplicationResult* find(std::string_view name) const {
    for (const ApplicationResult& app : comparison_.apps) {
      if (app.name == name) return &app;
    }
    return nullptr;
  }
  // The quantity of each of the named applications that ran.
  template <class Quantity>
  [[nodiscard]] std::vector<double> of(std::initializer_list<std::string_view> names,
                                       Quantity quantity) const {
    std::vector<double> values;
    for (const std::string_view name : names) {
      if (const ApplicationResult* app = find(name)) values.push_back(quantity(*app));
    }
    return values;
  }
  template <class Quantity>
  [[nodiscard]] std::vector<double> of_all(Quantity quantity) const {
    std::vector<double> values;
    for (const ApplicationResult& app : comparison_.apps) values.push_back(quantity(app));
    return values;
  }

  void claim(std::string name, std::string published, const std::vector<double>& values,
             double (*pick)(const std::vector<double>&), double low, double high,
             int decimals = 2) {
    if (values.empty()) return;
    claims.push_back({std::move(name), std::move(published), pick(values), decimals, low, high});
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

}  // namespace

double published_speedup(std::string_view app) {
  if (app == "KM") return 4.81;
  if (app == "ST") return 5.18;
  return 0;
}

std::vector<Claim> claims_of(const Comparison& comparison) {
  if (comparison.architectures.size() < 2) return {};
  Judge judge(comparison);
  const bool all = comparison.apps.size() == application_table().size();
  if (all) judge.claim("D over C, mean of all", "2.0", judge.of_all(faster), mean_of, 1.7, 2.4);
  judge.claim("KM: D over C", "4.81", judge.of({"KM"}, faster), mean_of, 3.5, 6);
  judge.claim("ST: D over C", "5.18", judge.of({"ST"}, faster), mean_of, 3.5, 6.5);
  judge.claim("RL, FIR, MP: D over C, least", "0.92 (mean)", judge.of({"RL", "FIR", "MP"}, faster),
              least_of, 0.85, 1.0);
  judge.claim("RL, FIR, MP: D over C, most", "0.92 (mean)", judge.of({"RL", "FIR", "MP"}, faster),
              most_of, 0.85, 1.0);
  judge.claim("PR, MT, FFT: D over C, least", "above 1", judge.of({"PR", "MT", "FFT"}, faster),
              least_of, 1.0, any_number);
  judge.claim("AES: D over C", "about 1", judge.of({"AES"}, faster), mean_of, 0.95, 1.05);
  judge.claim("MT, KM, FFT, ST: fewer IOMMU accesses, mean, %", "68.3",
              judge.of({"MT", "KM", "FFT", "ST"}, fewer_iommu_percent), mean_of, 60, 75, 1);
  judge.claim("ST: fewer IOMMU accesses, %", "90", judge.of({"ST"}, fewer_iommu_percent), mean_of,
              85, 100, 1);
  judge.claim("RL, FIR, MP: walks D/C, least", "2.0", judge.of({"RL", "FIR", "MP"}, walks_ratio),
              least_of, 1.98, 2.02);
  if (all)
    judge.claim("walks D/C, mean of all", "1.67", judge.of_all(walks_ratio), mean_of, 1.5, 1.8);
  judge.claim("TLB-hit shares differ by at most, points", "the same", judge.of_all(tlb_points),
              most_of, 0, 2);
  judge.claim("L2-TLB misses of C and D differ by at most, %", "the same",
              judge.of_all(miss_difference_percent), most_of, 0, 5, 1);
  if (comparison.architectures.size() > 2) {
    judge.claim("bypass against the better of C and D, least", "(ours)",
                judge.of_all([](const ApplicationResult& app) {
                  return ratio(std::min(app.summaries[0].cycles, app.summaries[1].cycles).raw(),
                               app.summaries[2].cycles.raw());
                }),
                least_of, 0.98, any_number, 3);
    const double best =
        std::max(1.0, comparison.mean_speedup(1));  // mean speed-up of C over itself is 1
    judge.claims.push_back({"bypass over the better mean of C and D", "1.06 over D",
                            comparison.mean_speedup(2) / best, 3, 1.0, any_number});
  }
  return std::move(judge.claims);
}

}  // namespace demarc::sim::translation
