// Collects pairs of addresses that conflict, solves for the hash, and confirms it on fresh ones.
#include "hash_pairs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "demarc/base/gf2.hpp"
#include "robust_null_space.hpp"

namespace demarc::probe {
namespace {

double median_of(std::vector<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

// Median over several measurements of each address: an outlier of one of them does not matter.
Result<std::vector<float>> median_times(const TimeAgainst& time,
                                        std::span<const std::uint64_t> addresses, int repeats) {
  std::vector<std::vector<float>> all(addresses.size());
  for (int r = 0; r < repeats; ++r) {
    DEMARC_TRY(const std::vector<float> once, time(addresses));
    for (std::size_t i = 0; i < once.size(); ++i) all[i].push_back(once[i]);
  }
  std::vector<float> medians;
  medians.reserve(all.size());
  for (auto& values : all) medians.push_back(static_cast<float>(median_of(std::move(values))));
  return medians;
}

constexpr int confirmations = 5;

}  // namespace

Histogram make_histogram(std::span<const float> values, std::size_t bins) {
  Histogram histogram;
  histogram.counts.assign(bins, 0);
  if (values.empty() || bins == 0) return histogram;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  histogram.low = static_cast<double>(*low);
  histogram.bin_width =
      std::max((static_cast<double>(*high) - histogram.low) / static_cast<double>(bins), 1e-6);
  for (const float value : values) {
    const auto bin = static_cast<std::size_t>((static_cast<double>(value) - histogram.low) /
                                              histogram.bin_width);
    ++histogram.counts[std::min(bin, bins - 1)];
  }
  return histogram;
}

double Confusion::agreement() const {
  // Both kinds of prediction count the same, however many there were of each.
  const double same = same_same + same_other;
  const double other = other_same + other_other;
  if (same == 0 || other == 0) return 0;
  return (same_same / same + other_other / other) / 2;
}

double conflict_threshold(std::span<const float> times, double spread) {
  std::vector<float> values(times.begin(), times.end());
  const double median = median_of(values);
  for (auto& value : values) {
    value = static_cast<float>(std::abs(static_cast<double>(value) - median));
  }
  constexpr double normal_consistency = 1.4826;
  return median + spread * std::max(normal_consistency * median_of(std::move(values)), 0.5);
}

std::vector<std::uint64_t> random_lines(const MemoryFacts& facts, std::size_t count,
                                        Random& random) {
  std::vector<std::uint64_t> lines(count);
  const std::uint64_t number = (std::uint64_t{1} << facts.address_bits) / facts.line_bytes;
  for (auto& line : lines) line = random.below(number) * facts.line_bytes;
  return lines;
}

std::uint64_t address_with_hash(std::uint64_t random_address, std::uint64_t like,
                                const gpu::LinearHash& hash, std::uint32_t flip) {
  // The rows are a low-pivot basis: each pivot bit changes its own row only.
  const std::uint32_t wanted = hash(like) ^ flip;
  const std::uint32_t wrong = hash(random_address) ^ wanted;
  std::uint64_t address = random_address;
  for (std::size_t i = 0; i < hash.rows.size(); ++i) {
    if (((wrong >> i) & 1U) != 0) {
      address ^= std::uint64_t{1} << std::countr_zero(hash.rows[i]);
    }
  }
  return address;
}

Result<void> collect_and_solve(const MemoryFacts& facts, std::uint64_t fixed,
                               const TimeAgainst& time, const HashOptions& options,
                               std::uint64_t most, Random& random, const Progress& progress,
                               HashFinding& finding) {
  const std::uint32_t wanted = options.pairs != 0 ? options.pairs : 4 * facts.address_bits;
  constexpr std::size_t batch = 8192;
  std::vector<float> times;
  std::vector<std::uint64_t> differences;
  while (differences.size() < wanted && finding.measured < most) {
    const auto candidates = random_lines(facts, batch, random);
    DEMARC_TRY(const std::vector<float> measured, time(candidates));
    finding.measured += static_cast<std::uint32_t>(batch);
    if (finding.threshold == 0) finding.threshold = conflict_threshold(measured, 5);
    if (times.size() < 16 * batch) times.insert(times.end(), measured.begin(), measured.end());
    std::vector<std::uint64_t> suspects;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (static_cast<double>(measured[i]) > finding.threshold && candidates[i] != fixed) {
        suspects.push_back(candidates[i]);
      }
    }
    if (suspects.empty()) continue;
    DEMARC_TRY(const std::vector<float> again, median_times(time, suspects, confirmations));
    for (std::size_t i = 0; i < suspects.size(); ++i) {
      if (static_cast<double>(again[i]) > finding.threshold) {
        differences.push_back(suspects[i] ^ fixed);
      }
    }
    report_progress(progress, std::min(1.0, static_cast<double>(differences.size()) / wanted) * 0.9,
                    finding.what + " hash: collecting pairs");
  }
  finding.times = make_histogram(times, 64);
  finding.pairs = static_cast<std::uint32_t>(differences.size());
  if (differences.size() < facts.address_bits) {
    finding.reason = fmt::format(
        "only {} conflicts among {} pairs: nothing stands out above {:.0f} "
        "cycles",
        differences.size(), finding.measured, finding.threshold);
    return {};
  }
  std::uint64_t columns = (std::uint64_t{1} << facts.address_bits) - 1;
  columns &= ~static_cast<std::uint64_t>(facts.line_bytes - 1);
  const auto solved = robust_null_space(differences, columns, options.least_agreement, random);
  finding.hash.rows = solved.masks;
  finding.wrong_pairs = static_cast<std::uint32_t>(differences.size() - solved.inliers);
  if (solved.masks.empty()) {
    finding.reason = fmt::format("no linear function agrees with {:.0f} % of the {} pairs",
                                 options.least_agreement * 100, differences.size());
  } else if (solved.inliers < solved.rank + 12) {
    finding.reason = fmt::format("{} pairs are too few to confirm a function of {} address bits",
                                 differences.size(), facts.address_bits);
    finding.hash.rows.clear();
  }
  return {};
}

Result<void> confirm(const MemoryFacts& facts, std::uint64_t fixed, const TimeAgainst& time,
                     const HashOptions& options, Random& random, HashFinding& finding) {
  if (finding.hash.empty()) return {};
  constexpr std::size_t count = 200;
  auto same = random_lines(facts, count, random);
  auto other = random_lines(facts, count, random);
  const auto all = finding.hash.count();
  for (auto& address : same) address = address_with_hash(address, fixed, finding.hash, 0);
  for (auto& address : other) {
    const auto flip = static_cast<std::uint32_t>(1 + random.below(all - 1));
    address = address_with_hash(address, fixed, finding.hash, flip);
  }
  DEMARC_TRY(const std::vector<float> same_times, median_times(time, same, confirmations));
  DEMARC_TRY(const std::vector<float> other_times, median_times(time, other, confirmations));
  for (const float t : same_times) {
    ++(static_cast<double>(t) > finding.threshold ? finding.confusion.same_same
                                                  : finding.confusion.same_other);
  }
  for (const float t : other_times) {
    ++(static_cast<double>(t) > finding.threshold ? finding.confusion.other_same
                                                  : finding.confusion.other_other);
  }
  const double agreement = finding.confusion.agreement();
  finding.decided = agreement >= options.least_agreement;
  finding.reason =
      fmt::format("{} of {} pairs agree; {:.1f} % of {} predictions on fresh addresses hold",
                  finding.pairs - finding.wrong_pairs, finding.pairs, agreement * 100, 2 * count);
  return {};
}

}  // namespace demarc::probe
