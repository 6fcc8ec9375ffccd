// Runs of addresses as intervals of places (elements, lines or pages).
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/base/rounding.hpp"
#include "demarc/locality/maps.hpp"

namespace demarc::locality {

// Place lo + k, 0 <= k < length, is touched by the positions first + k * width .. + width - 1 of
// the run; position p is thread run.thread + p, or counted from the end when `reversed`.
struct Interval {
  std::uint64_t lo = 0;
  std::uint32_t length = 1;
  std::uint32_t width = 1;
  std::uint32_t first = 0;
  bool reversed = false;
};

// How an access numbers its places: address / unit + base.
struct Places {
  std::uint64_t unit = 1;
  std::uint64_t base = 0;
};

// For every access: the unit is the granularity, or for elements the largest power of two that
// divides all addresses of the accesses whose extents overlap; bases keep the others apart.
[[nodiscard]] std::vector<Places> places_of(const AccessRuns& runs, Granularity granularity);

// Calls f(Interval) for the run.
template <class F>
void for_each_interval(const Run& run, const Places& places, F&& f) {
  const std::uint64_t unit = places.unit;
  Interval interval;
  std::uint64_t address = run.address;
  std::uint64_t stride = 0;
  if (run.stride < 0) {
    address += static_cast<std::uint64_t>(run.stride) * (run.count - 1);
    stride = static_cast<std::uint64_t>(-run.stride);
    interval.reversed = true;
  } else {
    stride = static_cast<std::uint64_t>(run.stride);
  }
  interval.lo = address / unit + places.base;
  if (stride == 0 || run.count == 1) {
    interval.width = run.count;
    f(interval);
    return;
  }
  if (stride == unit) {
    interval.length = run.count;
    f(interval);
    return;
  }
  if (stride < unit && unit % stride == 0) {
    const auto per_place = static_cast<std::uint32_t>(unit / stride);
    const std::uint64_t offset = address % unit;
    // Accesses left in the first place.
    auto head = static_cast<std::uint32_t>(ceil_div(unit - offset, stride));
    head = head < run.count ? head : run.count;
    std::uint32_t done = 0;
    if (head != per_place) {
      interval.width = head;
      f(interval);
      done = head;
      ++interval.lo;
    }
    const std::uint32_t whole = (run.count - done) / per_place;
    if (whole > 0) {
      interval.length = whole;
      interval.width = per_place;
      interval.first = done;
      f(interval);
      interval.lo += whole;
      done += whole * per_place;
    }
    if (done < run.count) {
      interval.length = 1;
      interval.width = run.count - done;
      interval.first = done;
      f(interval);
    }
    return;
  }
  for (std::uint32_t done = 0; done < run.count;) {
    const std::uint64_t place = (address + stride * done) / unit;
    interval.lo = place + places.base;
    interval.first = done;
    interval.width = 0;
    do {
      ++interval.width;
      ++done;
    } while (done < run.count && (address + stride * done) / unit == place);
    f(interval);
  }
}

// Threads of positions first .. first + count - 1 of the run: [begin, end).
struct ThreadRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
[[nodiscard]] inline ThreadRange threads_of(const Run& run, bool reversed, std::uint32_t first,
                                            std::uint32_t count) {
  const std::uint32_t begin =
      reversed ? run.thread + run.count - first - count : run.thread + first;
  return {begin, begin + count};
}

// First bytes of the lowest and the highest place of a run; what leads out of the address space
// ends at its ends.
struct AddressSpan {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};
[[nodiscard]] AddressSpan span_of(const AccessRuns& runs, const Run& run);

// True for every access that some thread executes more than once.
[[nodiscard]] std::vector<bool> repeated_accesses(const AccessRuns& runs);

}  // namespace demarc::locality
