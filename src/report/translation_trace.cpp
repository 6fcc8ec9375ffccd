// Writes the counters of a translation study over time as a Perfetto trace.
#include "demarc/report/perfetto.hpp"
#include "demarc/report/translation_page.hpp"

namespace demarc::report {

std::string translation_trace(const sim::translation::Comparison& comparison,
                              const std::vector<sim::translation::Timeline>& timelines) {
  TraceWriter trace;
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    const auto process = static_cast<std::uint32_t>(i + 1);
    trace.process(process, fmt::format("{}, {}", comparison.apps.front().name,
                                       to_string(comparison.architectures[i])));
    const auto width = static_cast<double>(timelines[i].bin_cycles.raw());
    double inside = 0;  // the IOMMU
    double time = 0;
    for (const sim::translation::TimelineBin& bin : timelines[i].bins) {
      inside += static_cast<double>(bin.iommu_arrivals) - static_cast<double>(bin.iommu_walks);
      const auto rate = [&](const char* name, std::uint64_t count) {
        trace.counter(process, name, time, static_cast<double>(count) * 1000 / width);
      };
      rate("L2-TLB misses per 1000 cycles", bin.l2_misses);
      rate("GMMU walks per 1000 cycles", bin.gmmu_walks);
      rate("IOMMU walks per 1000 cycles", bin.iommu_walks);
      rate("pages placed per 1000 cycles", bin.pages_placed);
      rate("pages moved per 1000 cycles", bin.pages_moved);
      trace.counter(process, "requests inside the IOMMU", time, inside);
      time += width;
    }
  }
  return trace.json();
}

}  // namespace demarc::report
