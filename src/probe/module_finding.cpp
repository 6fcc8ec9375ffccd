#include <algorithm>
#include <cmath>

#include "hash_pairs.hpp"

namespace demarc::probe {
namespace {

constexpr std::size_t most_threads = 64;
constexpr int crowd_repeats = 15;

// Least squares of a line through y[first .. last).
double line_error(std::span<const float> y) {
  const auto n = static_cast<double>(y.size());
  double sx = 0;
  double sy = 0;
  double sxx = 0;
  double sxy = 0;
  double syy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto x = static_cast<double>(i);
    const auto value = static_cast<double>(y[i]);
    sx += x;
    sy += value;
    sxx += x * x;
    sxy += x * value;
    syy += value * value;
  }
  const double dx = n * sxx - sx * sx;
  if (dx == 0) return 0;
  const double slope = (n * sxy - sx * sy) / dx;
  const double constant = (sy - slope * sx) / n;
  return std::max(syy - slope * sxy - constant * sy, 0.0);
}

// Where two lines fit much better than one: the number of other threads of the last point on the
// first; 0: nowhere.
std::uint32_t knee_of(std::span<const float> y) {
  const double one = line_error(y);
  double best = one;
  std::size_t at = 0;
  for (std::size_t k = 3; k + 3 < y.size(); ++k) {
    const double two = line_error(y.first(k + 1)) + line_error(y.subspan(k));
    if (two < best) {
      best = two;
      at = k;
    }
  }
  return best < one / 4 ? static_cast<std::uint32_t>(at) : 0;
}

}  // namespace

Result<ModuleFinding> measure_module(TimedMemory& memory, const gpu::LinearHash& bank,
                                     const gpu::LinearHash& set, const gpu::LinearHash& module,
                                     Random& random, const Progress& progress) {
  struct Case {
    const char* name;
    bool same_set, same_bank, same_module;
  };
  constexpr Case cases[] = {{"SCSB", true, true, true},
                            {"DCSB", false, true, true},
                            {"SCDB", true, false, true},
                            {"DCDB", false, false, true},
                            {"DM", false, false, false}};
  const MemoryFacts& facts = memory.facts();
  const std::uint64_t primary = random_lines(facts, 1, random).front();
  // All bits of both hashes as one basis, in which any choice of address can be solved.
  auto joined = bank.rows;
  joined.insert(joined.end(), set.rows.begin(), set.rows.end());
  ModuleFinding finding;
  for (const Case& wanted : cases) {
    // Addresses of the case by rejection from addresses that share the fixed hash.
    const gpu::LinearHash fixed =
        wanted.same_set && wanted.same_bank ? gpu::LinearHash{gpu::low_pivot_basis(joined)}
        : wanted.same_set                   ? set
        : wanted.same_bank                  ? bank
        : wanted.same_module                ? gpu::LinearHash{gpu::low_pivot_basis(module.rows)}
                                            : gpu::LinearHash{};
    std::vector<std::uint64_t> others;
    while (others.size() < most_threads) {
      const auto address =
          address_with_hash(random_lines(facts, 1, random).front(), primary, fixed, 0);
      const bool fits = (bank(address) == bank(primary)) == wanted.same_bank &&
                        (set(address) == set(primary)) == wanted.same_set &&
                        (module(address) == module(primary)) == wanted.same_module;
      if (fits) others.push_back(address);
    }
    CrowdCurve curve;
    curve.name = wanted.name;
    for (std::size_t n = 0; n <= most_threads; ++n) {
      std::vector<float> times;
      for (int r = 0; r < crowd_repeats; ++r) {
        DEMARC_TRY(const float cycles, memory.crowded_read(primary, std::span(others).first(n)));
        times.push_back(cycles);
      }
      std::nth_element(times.begin(), times.begin() + crowd_repeats / 2, times.end());
      curve.cycles.push_back(times[crowd_repeats / 2]);
    }
    finding.curves.push_back(std::move(curve));
    report_progress(progress, static_cast<double>(finding.curves.size()) / 5,
                    "modules: interference of five cases");
  }
  const auto& shared = finding.curves[3].cycles;
  const auto& apart = finding.curves[4].cycles;
  // As in the paper, whose n counts all threads: the reader holds a register like the others.
  const std::uint32_t knee = knee_of(shared);
  finding.miss_registers = knee == 0 ? 0 : knee + 1;
  finding.isolated = static_cast<double>(apart.back()) < static_cast<double>(apart.front()) * 1.05;
  return finding;
}

}  // namespace demarc::probe
