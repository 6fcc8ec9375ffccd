// Numbers the elements, lines or pages that accesses touch.
#include "maps/places.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace demarc::locality {

AddressSpan span_of(const AccessRuns& runs, const Run& run) {
  __extension__ using Wide = __int128;
  constexpr Wide zero = 0;
  constexpr Wide end = std::numeric_limits<std::uint64_t>::max();
  const Loop& loop = runs.loop_of(run);
  const Wide across = Wide{run.stride} * (run.count - 1);
  const Wide along = loop.trips == 0 ? zero : Wide{loop.stride} * (loop.trips - 1);
  const Wide low = run.address + std::min(across, zero) + std::min(along, zero);
  const Wide high = run.address + std::max(across, zero) + std::max(along, zero);
  return {static_cast<std::uint64_t>(std::max(low, zero)),
          static_cast<std::uint64_t>(std::min(high, end))};
}

std::vector<Places> places_of(const AccessRuns& runs, Granularity granularity) {
  const std::size_t count = runs.accesses.size();
  if (granularity != Granularity::element)
    return std::vector<Places>(count, {static_cast<std::uint64_t>(granularity), 0});

  struct Extent {
    std::uint64_t low = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t high = 0;
    std::uint64_t bits = 0;  // set in some address or stride
    std::size_t access = 0;
  };
  std::vector<Extent> extents(count);
  for (std::size_t a = 0; a < count; ++a) extents[a].access = a;
  for (const Run& run : runs.runs) {
    Extent& extent = extents[run.access];
    const AddressSpan span = span_of(runs, run);
    const Loop& loop = runs.loop_of(run);
    extent.low = std::min(extent.low, span.low);
    extent.high = std::max(extent.high, span.high);
    extent.bits |= run.address;
    if (run.count > 1) extent.bits |= static_cast<std::uint64_t>(run.stride);
    if (loop.trips > 1) extent.bits |= static_cast<std::uint64_t>(loop.stride);
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.low < b.low; });
  std::vector<Places> result(count);
  std::uint64_t cluster = 0;
  for (std::size_t first = 0; first < count;) {
    std::uint64_t high = extents[first].high;
    std::uint64_t bits = extents[first].bits;
    std::size_t last = first + 1;
    while (last < count && extents[last].low <= high) {
      high = std::max(high, extents[last].high);
      bits |= extents[last].bits;
      ++last;
    }
    const std::uint64_t unit = bits == 0 ? 1 : std::uint64_t{1} << std::countr_zero(bits);
    for (; first < last; ++first) result[extents[first].access] = {unit, cluster << 50U};
    ++cluster;
  }
  return result;
}

std::vector<bool> repeated_accesses(const AccessRuns& runs) {
  std::vector<bool> repeated(runs.accesses.size(), false);
  for (const Run& run : runs.runs)
    if (run.request > 0 || runs.loop_of(run).trips > 1) repeated[run.access] = true;
  return repeated;
}

}  // namespace demarc::locality
