// Levels of a latency that grows with a footprint: where a curve over the number of pages rises,
// and by how much. Nothing is assumed about what makes the steps. With TLBs that replace the oldest
// page the curve rises at once; with those that replace any page it rises over two octaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace demarc::probe {

// One measured footprint.
struct CurvePoint {
  std::uint64_t pages = 0;
  double cycles = 0;  // per access: the median of some walks
  double spread = 0;  // cycles: the greatest of these walks minus the least
};

struct LatencyStep {
  // The largest measured number of pages at which the latency has not yet risen by a tenth of the
  // step, or by what noise hides.
  std::uint64_t begin_pages = 0;
  std::uint64_t after_pages = 0;  // the next footprint measured
  std::uint64_t end_pages = 0;    // the smallest measured number of pages at which it has risen by
                                  // nine tenths
  double cycles_before = 0;
  double cycles_after = 0;
  bool to_level = true;  // the latency stands still behind it; else the rise may be greater
  [[nodiscard]] double cost() const { return cycles_after - cycles_before; }
};

struct LatencySteps {
  double base_cycles = 0;   // before the first step
  double noise_cycles = 0;  // how far points lie from a curve that never falls
  double least_cost = 0;    // cycles: a smaller rise cannot be told from noise
  std::vector<LatencyStep> steps;
};

// `curve` has ascending numbers of pages, four or more per octave, and at least 4 points.
// `least_cost` (cycles) is the smallest rise to be called a step, whatever the noise.
[[nodiscard]] LatencySteps find_steps(std::span<const CurvePoint> curve, double least_cost);

}  // namespace demarc::probe
