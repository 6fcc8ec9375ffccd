// Levels of a latency that grows with a footprint: where a curve over the number of pages rises,
// and by how much. Nothing is assumed of what makes the steps: TLBs that replace the oldest page
// rise at once, those that replace any page rise over two octaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace demarc::probe {

// One measured footprint.
struct CurvePoint {
  std::uint64_t pages = 0;
  double cycles = 0;  // per access: the median of some walks
  double spread = 0;  // cycles: greatest less least of these walks
};

struct LatencyStep {
  // The most pages measured at which a tenth of the rise, or what noise hides, is not paid.
  std::uint64_t begin_pages = 0;
  std::uint64_t after_pages = 0;  // the next footprint measured
  std::uint64_t end_pages = 0;    // the fewest pages at which nine tenths are
  double cycles_before = 0;
  double cycles_after = 0;
  bool to_level = true;  // the latency stands still behind it; else the rise may be greater
  [[nodiscard]] double cost() const { return cycles_after - cycles_before; }
};

struct LatencySteps {
  double base_cycles = 0;   // before the first step
  double noise_cycles = 0;  // how far points lie from a curve that never falls
  double least_cost = 0;    // cycles: a rise below it is not told from noise
  std::vector<LatencyStep> steps;
};

// `curve` has ascending pages, four or more an octave, at least 4 points. `least_cost` (cycles) is
// the smallest rise to be called a step, whatever the noise.
[[nodiscard]] LatencySteps find_steps(std::span<const CurvePoint> curve, double least_cost);

}  // namespace demarc::probe
