// Finds which threads disturb each other's reads, and how many miss registers of a module the knee
// of the curve shows.
#include <algorithm>
#include <boost/math/statistics/linear_regression.hpp>
#include <cmath>
#include <numeric>

#include "demarc/base/gf2.hpp"
#include "hash_pairs.hpp"

namespace demarc::probe {
namespace {

constexpr std::size_t max_threads = 64;
constexpr int crowd_repeats = 15;
// Draws of an address before a case counts as impossible. A possible one takes every second draw,
// or every fourth.
constexpr std::size_t max_draws = 1000 * max_threads;
// A knee with fewer points behind it is not clear: of more than 33 registers, those of a simulated
// card were never found exactly.
constexpr std::size_t fewest_behind = max_threads / 2;
// The fit of two lines finds the place of a knee, the sharpest bend this near to it the point.
constexpr std::size_t nearby = 3;
// What a knee may have risen of what one more thread rises. Queues and banks that are short now and
// then round a knee off and move it. Fitted to simulated cards of 8 to 64 registers
// (docs/probe.md).
constexpr double max_rise = 0.3;
// What the thread behind that may add, of what the first one behind the knee adds: more would say
// that the knee lies further on.
constexpr double max_further = 1.3;
// Threads by which the place may differ with half of the banks. Short banks move it by a factor.
constexpr std::uint32_t knee_tolerance = 3;
constexpr std::size_t max_crowds = 5;

float median_time(std::span<float> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Least squares, over the index.
struct Line {
  double constant, slope;
  double error;  // sum of squares

  [[nodiscard]] double at(std::size_t n) const { return constant + slope * static_cast<double>(n); }
};

Line line_through(std::span<const float> points) {
  const std::vector<double> y(points.begin(), points.end());
  if (y.size() < 2) return {y.front(), 0, 0};
  std::vector<double> x(y.size());
  std::iota(x.begin(), x.end(), 0.0);
  const auto [constant, slope] = boost::math::statistics::simple_ordinary_least_squares(x, y);
  Line line{constant, slope, 0};
  for (std::size_t n = 0; n < y.size(); ++n) line.error += std::pow(y[n] - line.at(n), 2);
  return line;
}

// Where two lines fit much better than one: the last point of the first; 0: nowhere.
std::size_t two_lines(std::span<const float> cycles) {
  const double one = line_through(cycles).error;
  double best = one;
  std::size_t at = 0;
  for (std::size_t k = nearby; k + nearby < cycles.size(); ++k) {
    const double two =
        line_through(cycles.first(k + 1)).error + line_through(cycles.subspan(k)).error;
    if (two < best) {
      best = two;
      at = k;
    }
  }
  return best < one / 4 ? at : 0;
}

// A row of the bank hash that the module leaves open: it halves the banks of a module.
std::optional<std::uint64_t> row_inside_module(const gpu::LinearHash& bank,
                                               const gpu::LinearHash& module) {
  auto rows = module.rows;
  const std::size_t before = gf2_rank(rows);
  for (const std::uint64_t row : bank.rows) {
    rows.push_back(row);
    if (gf2_rank(rows) > before) return row;
    rows.pop_back();
  }
  return std::nullopt;
}

struct Case {
  const char* name;
  bool same_set, same_bank, same_module;
  bool half_the_banks = false;
};
constexpr Case cases[] = {{"SCSB", true, true, true},  {"DCSB", false, true, true},
                          {"SCDB", true, false, true}, {"DCDB", false, false, true},
                          {"DM", false, false, false}, {"DCHB", false, false, true, true}};
constexpr const Case& all_banks = cases[3];
constexpr const Case& half_of_banks = cases[5];

// Reads one address beside crowds of other threads.
class Crowds {
 public:
  Crowds(TimedMemory& memory, const gpu::LinearHash& bank, const gpu::LinearHash& set,
         const gpu::LinearHash& module, Random& random)
      : memory_(&memory),
        bank_(&bank),
        set_(&set),
        module_(&module),
        random_(&random),
        halving_(row_inside_module(bank, module)),
        primary_(random_lines(memory.facts(), 1, random).front()) {
    // All bits of both hashes as one basis, in which any choice of address can be solved.
    joined_.rows = bank.rows;
    joined_.rows.insert(joined_.rows.end(), set.rows.begin(), set.rows.end());
    joined_.rows = gpu::low_pivot_basis(joined_.rows);
  }

  // From 0 to max_threads others; nothing where the hashes rule the case out.
  Result<std::optional<CrowdCurve>> curve(const Case& wanted) {
    const std::vector<std::uint64_t> others = others_of(wanted);
    if (others.size() < max_threads) return std::nullopt;
    CrowdCurve curve;
    curve.name = wanted.name;
    for (std::size_t n = 0; n <= max_threads; ++n) {
      std::vector<float> times;
      for (int r = 0; r < crowd_repeats; ++r) {
        DEMARC_TRY(const float cycles, memory_->crowded_read(primary_, std::span(others).first(n)));
        times.push_back(cycles);
      }
      curve.cycles.push_back(median_time(times));
    }
    return curve;
  }

 private:
  // Addresses of the case by rejection from addresses that share the fixed hash.
  std::vector<std::uint64_t> others_of(const Case& wanted) {
    std::vector<std::uint64_t> others;
    if (wanted.half_the_banks && !halving_) return others;
    const gpu::LinearHash& fixed = wanted.same_set && wanted.same_bank ? joined_
                                   : wanted.same_set                   ? *set_
                                   : wanted.same_bank                  ? *bank_
                                   : wanted.same_module                ? *module_
                                                                       : nothing_;
    for (std::size_t draw = 0; draw < max_draws && others.size() < max_threads; ++draw) {
      const std::uint64_t line = random_lines(memory_->facts(), 1, *random_).front();
      const std::uint64_t address = address_with_hash(line, primary_, fixed, 0);
      const bool fits = ((*bank_)(address) == (*bank_)(primary_)) == wanted.same_bank &&
                        ((*set_)(address) == (*set_)(primary_)) == wanted.same_set &&
                        ((*module_)(address) == (*module_)(primary_)) == wanted.same_module;
      const bool in_half =
          !wanted.half_the_banks || parity(address, *halving_) == parity(primary_, *halving_);
      if (fits && in_half) others.push_back(address);
    }
    return others;
  }

  TimedMemory* memory_;
  const gpu::LinearHash* bank_;
  const gpu::LinearHash* set_;
  const gpu::LinearHash* module_;
  Random* random_;
  std::optional<std::uint64_t> halving_;
  std::uint64_t primary_;
  gpu::LinearHash joined_;
  gpu::LinearHash nothing_;
};

// The median of several crowds, each with a place of its own for the reader and the others: one
// crowd meets by chance in banks and in time.
Result<std::optional<CrowdCurve>> median_curve(std::span<Crowds> crowds, const Case& wanted) {
  std::vector<CrowdCurve> curves;
  for (Crowds& one : crowds) {
    DEMARC_TRY(std::optional<CrowdCurve> curve, one.curve(wanted));
    if (!curve) return std::nullopt;
    curves.push_back(std::move(*curve));
  }
  CrowdCurve median = curves.front();
  for (std::size_t n = 0; n < median.cycles.size(); ++n) {
    std::vector<float> times;
    times.reserve(curves.size());
    for (const CrowdCurve& curve : curves) times.push_back(curve.cycles[n]);
    median.cycles[n] = median_time(times);
  }
  return median;
}

const CrowdCurve* curve_of(const ModuleFinding& finding, const Case& wanted) {
  const auto at = std::find_if(finding.curves.begin(), finding.curves.end(),
                               [&](const CrowdCurve& curve) { return curve.name == wanted.name; });
  return at == finding.curves.end() ? nullptr : &*at;
}

// How far y[n] lies above the line through y[0 .. points).
double rise_above(std::span<const float> y, std::size_t points, std::size_t n) {
  return static_cast<double>(y[n]) - line_through(y.first(points)).at(n);
}

}  // namespace

std::optional<std::uint32_t> find_knee(std::span<const float> cycles) {
  const std::size_t at = two_lines(cycles);
  if (at == 0) return std::nullopt;
  const auto bend = [&](std::size_t n) { return cycles[n + 1] - 2 * cycles[n] + cycles[n - 1]; };
  std::size_t sharpest = at;
  for (std::size_t n = at - nearby + 1; n <= at + nearby && n + 1 < cycles.size(); ++n) {
    if (bend(n) > bend(sharpest)) sharpest = n;
  }
  if (sharpest < 2 * nearby || sharpest + fewest_behind >= cycles.size()) return std::nullopt;
  const std::size_t before = sharpest - nearby + 1;
  const double at_knee = rise_above(cycles, before, sharpest);
  const double behind = rise_above(cycles, before, sharpest + 1);
  const double further = rise_above(cycles, before, sharpest + 2);
  if (at_knee > max_rise * behind || further - behind > max_further * (behind - at_knee))
    return std::nullopt;
  return static_cast<std::uint32_t>(sharpest);
}

MissRegisters judge_miss_registers(const ModuleFinding& finding) {
  const CrowdCurve* all = curve_of(finding, all_banks);
  const CrowdCurve* half = curve_of(finding, half_of_banks);
  if (all == nullptr || half == nullptr)
    return {0, "a module has too few banks to tell its registers from its banks"};
  const auto knee = find_knee(all->cycles);
  if (!knee) {
    return {0, fmt::format("up to {} threads show no sharp knee: there are more registers, or "
                           "queues and banks hide them",
                           all->cycles.size())};
  }
  // As in the paper, whose n counts all threads: the reader holds a register like the others.
  const std::uint32_t threads = *knee + 1;
  const auto with_half = static_cast<std::uint32_t>(two_lines(half->cycles) + 1);
  if (with_half > threads + knee_tolerance || threads > with_half + knee_tolerance) {
    return {0, fmt::format("the knee lies at {} threads, and at {} with half of the banks, so the "
                           "registers alone do not explain it",
                           threads, with_half)};
  }
  return {
      threads,
      fmt::format("a sharp knee at {} threads, which stays there with half of the banks", threads)};
}

Result<ModuleFinding> measure_module(TimedMemory& memory, const gpu::LinearHash& bank,
                                     const gpu::LinearHash& set, const gpu::LinearHash& module,
                                     Random& random, const Progress& progress) {
  ModuleFinding finding;
  std::vector<Crowds> crowds;
  for (std::size_t i = 0; i < max_crowds; ++i)
    crowds.emplace_back(memory, bank, set, module, random);
  double done = 0;
  for (const Case& wanted : cases) {
    const bool knee = &wanted == &all_banks || &wanted == &half_of_banks;
    DEMARC_TRY(std::optional<CrowdCurve> curve,
               median_curve(std::span(crowds).first(knee ? max_crowds : 1), wanted));
    report_progress(progress, ++done / std::size(cases), "modules: interference of six cases");
    if (curve) finding.curves.push_back(std::move(*curve));
  }
  finding.miss_registers = judge_miss_registers(finding);
  for (const CrowdCurve& curve : finding.curves) {
    if (curve.name != "DM") continue;
    finding.isolated =
        static_cast<double>(curve.cycles.back()) < static_cast<double>(curve.cycles.front()) * 1.05;
  }
  return finding;
}

}  // namespace demarc::probe
