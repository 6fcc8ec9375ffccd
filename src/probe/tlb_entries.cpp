// Finds what an entry of a TLB covers, and the ways, by pages that lie further and further apart.
#include <algorithm>
#include <cmath>

#include "page_walks.hpp"

namespace demarc::probe {
namespace {

// Twice as far apart, half as many pages fit as long as two of them shared an entry, or a set; else
// as many as before. What lies above the one share is "as many", below the other "half as many".
constexpr double as_many = 0.71;
constexpr double half_as_many = 0.62;
// A level that holds so many pages for each that the level in front of it holds is not hidden by
// it. One that replaces any page still hits a fifth of the time at twice its reach.
constexpr double beyond_a_sharp_level = 1.3;
constexpr double beyond_another_level = 2;

// One page more or less is a large part of so few that fit.
constexpr std::uint64_t fewest_pages = 12;

enum class End { settled, hidden, memory, unclear };

// How many pages fit, by how far they lie apart: doubled until as many fit as before.
struct Settled {
  std::uint64_t apart = 0;  // the last distance that was measured to be the end of a fall
  std::uint64_t fit = 0;    // the pages that fit there
  End end = End::memory;    // why no further: it is settled; hits of the level in front would hide
                            // it; there is no more memory; neither half as many nor as many fit
};

Result<Settled> settle(const PageWalks& walks, Layout layout, double cycles, double hidden_below,
                       Settled from) {
  Settled now = from;
  for (std::uint64_t apart = 2 * from.apart; walks.most(apart) >= 2; apart *= 2) {
    const std::uint64_t bound = 2 * now.fit;
    DEMARC_TRY(const auto fits, max_within(walks, apart, layout, cycles, bound));
    // Where even the most that there are fit, no more is known than that.
    const double fit = static_cast<double>(fits ? *fits : std::min(walks.most(apart), bound));
    if (fit <= hidden_below) {
      now.end = End::hidden;
      return now;
    }
    if (fit > as_many * static_cast<double>(now.fit)) {
      now.end = End::settled;
      return now;
    }
    if (!fits) return now;
    if (fit > half_as_many * static_cast<double>(now.fit)) {
      now.end = End::unclear;
      return now;
    }
    now.apart = apart;
    now.fit = *fits;
  }
  return now;
}

std::uint64_t rounded(double value) {
  return static_cast<std::uint64_t>(std::llround(std::max(value, 1.0)));
}

std::string_view why_not_told(End end) {
  if (end == End::hidden) return "pages that lie further apart are held by the level in front";
  return end == End::memory
             ? "there is no memory for pages that lie further apart"
             : "of pages twice as far apart, neither the same number nor half of it fits";
}

double pages_hidden_by(const TlbLevel& level) {
  return (level.sharp ? beyond_a_sharp_level : beyond_another_level) *
         static_cast<double>(level.reach_pages) /
         static_cast<double>(level.pages_per_entry.value_or(1));
}

// All pages at the settled distance fall into one set, and those at multiples of it. Where fewer
// fit at a multiple, they did not: that multiple.
Result<std::optional<std::uint64_t>> distance_of_fewer(const PageWalks& walks, double cycles,
                                                       const Settled& set) {
  for (const std::uint64_t multiple : {3U, 5U, 7U, 9U}) {
    const std::uint64_t apart = set.apart * multiple;
    DEMARC_TRY(const auto fits, max_within(walks, apart, Layout::in_order, cycles, 2 * set.fit));
    if (fits && static_cast<double>(*fits) <= as_many * static_cast<double>(set.fit)) {
      return std::optional<std::uint64_t>(apart);
    }
  }
  return std::optional<std::uint64_t>();
}

}  // namespace

Result<void> describe_entries(const PageWalks& walks, const TlbLevel* before, TlbLevel& level) {
  const double half = level.hit_cycles + level.miss_cycles / 2;
  DEMARC_TRY(const auto together, max_within(walks, 1, Layout::in_order, half, walks.most(1)));
  if (!together || *together == 0) {
    level.entry_reason = "half of the cost of a miss was not reached again";
    level.way_reason = level.entry_reason;
    return {};
  }
  if (*together < fewest_pages) {
    level.entry_reason =
        fmt::format("{} pages are too few to tell a number from its double", *together);
    level.way_reason = level.entry_reason;
    return {};
  }
  // A level that replaces any page misses half of the time only beyond its reach.
  const double stretch = static_cast<double>(*together) / static_cast<double>(level.reach_pages);
  const double hidden_below = before == nullptr ? 0 : pages_hidden_by(*before);
  DEMARC_TRY(const Settled entry,
             settle(walks, Layout::scattered, half, hidden_below, {1, *together}));
  if (entry.end != End::settled) {
    level.entry_reason =
        fmt::format("an entry covers {} pages or more: {}", entry.apart, why_not_told(entry.end));
    level.way_reason = "what an entry covers is not known";
    return {};
  }
  level.pages_per_entry = entry.apart;
  level.entry_reason =
      fmt::format("if one page is chosen at random from each {}, {} fit; from each {}, as many fit",
                  entry.apart, rounded(static_cast<double>(entry.fit) / stretch), 2 * entry.apart);

  DEMARC_TRY(const auto in_order,
             max_within(walks, entry.apart, Layout::in_order, half, 2 * *together));
  if (!in_order || *in_order == 0) {
    level.way_reason = std::string(why_not_told(End::memory));
    return {};
  }
  DEMARC_TRY(const Settled set,
             settle(walks, Layout::in_order, half, hidden_below, {entry.apart, *in_order}));
  const std::uint64_t fit = rounded(static_cast<double>(set.fit) / stretch);
  if (set.end != End::settled) {
    level.way_reason = fmt::format("at most {}: {}", fit, why_not_told(set.end));
  } else if (set.apart == entry.apart) {
    level.way_reason =
        "pages twice as far apart fit as well: fully associative, or sets that the lowest bits of "
        "a "
        "page do not pick";
  } else {
    DEMARC_TRY(const auto fewer, distance_of_fewer(walks, half, set));
    if (fewer) {
      level.way_reason = fmt::format(
          "at most {}: fewer fit of the first page of each {}, so the number of sets is not a "
          "power of two",
          fit, *fewer);
      return {};
    }
    level.ways = fit;
    level.way_reason = fmt::format(
        "so many fit if the first page of each {} is taken, and also if that of each {} is",
        set.apart, 2 * set.apart);
  }
  return {};
}

}  // namespace demarc::probe
