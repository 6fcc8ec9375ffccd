// Counts what happens, in stretches of time that double as the simulation goes on.
#include "timeline.hpp"

namespace demarc::sim::translation {
namespace {

TimelineBin sum_of(const TimelineBin& a, const TimelineBin& b) {
  TimelineBin sum = a;
  sum.l2_misses += b.l2_misses;
  sum.gmmu_walks += b.gmmu_walks;
  sum.iommu_arrivals += b.iommu_arrivals;
  sum.iommu_walks += b.iommu_walks;
  sum.pages_placed += b.pages_placed;
  sum.pages_moved += b.pages_moved;
  return sum;
}

// The bin of a cycle; when there are too many, two become one.
TimelineBin& bin_of(Timeline& timeline, Cycles now) {
  while (now / timeline.bin_cycles >= Timeline::max_bins) {
    auto& bins = timeline.bins;
    for (std::size_t i = 0; i < bins.size(); i += 2)
      bins[i / 2] = i + 1 < bins.size() ? sum_of(bins[i], bins[i + 1]) : bins[i];
    bins.resize((bins.size() + 1) / 2);
    timeline.bin_cycles = 2 * timeline.bin_cycles;
  }
  const std::size_t at = now / timeline.bin_cycles;
  if (at >= timeline.bins.size()) timeline.bins.resize(at + 1);
  return timeline.bins[at];
}

}  // namespace

Watch timeline_watch(Timeline& timeline) {
  return [&timeline](const Happening& happening) {
    switch (happening.moment) {
      case Moment::l2_missed:
        ++bin_of(timeline, happening.cycle).l2_misses;
        return;
      case Moment::gmmu_ended:
        ++bin_of(timeline, happening.cycle).gmmu_walks;
        return;
      case Moment::iommu_asked:
        ++bin_of(timeline, happening.cycle).iommu_arrivals;
        return;
      case Moment::iommu_ended:
        ++bin_of(timeline, happening.cycle).iommu_walks;
        return;
      case Moment::placed:
        ++bin_of(timeline, happening.cycle).pages_placed;
        return;
      case Moment::owner_resumed:
        ++bin_of(timeline, happening.cycle).pages_moved;
        return;
      default:
        return;
    }
  };
}

}  // namespace demarc::sim::translation
