// Writes the verdict on a probed translation in sentences.
#include "translation_words.hpp"

#include <algorithm>
#include <array>

namespace demarc::probe {
namespace {

constexpr double as_far = 1.5;     // a reach of less than so many times another is the same
constexpr double saturated = 0.9;  // of the highest bandwidth

std::string level_text(const TlbLevel& level, std::uint64_t page_bytes) {
  return fmt::format("{} pages ({}), {}{:.0f} cycles", level.reach_pages,
                     size_text(level.reach_pages * page_bytes),
                     level.miss_at_least ? "at least " : "", level.miss_cycles);
}

void say_levels(const PlaceFinding& place, std::vector<std::string>& verdict) {
  const auto& levels = place.levels.levels;
  if (levels.empty()) {
    verdict.push_back(fmt::format("{}: no TLB shows in {}: the latency stays at {:.0f} cycles",
                                  mapping_text(place.mapping), size_text(place.bytes),
                                  place.levels.steps.base_cycles));
    return;
  }
  std::string text;
  for (const TlbLevel& level : levels) {
    text += (text.empty() ? "" : "; ") + level_text(level, place.mapping.page_bytes);
  }
  verdict.push_back(fmt::format("{}: {:.0f} cycles, {} TLB level{}: reach and cost of a miss: {}",
                                mapping_text(place.mapping), place.levels.steps.base_cycles,
                                levels.size(), levels.size() == 1 ? "" : "s", text));
}

// For pieces that are larger than the pages: whether they reach further.
void say_larger(const PlaceFinding& place, const PlaceFinding& first,
                std::vector<std::string>& verdict) {
  if (place.mapping.piece_bytes <= place.mapping.page_bytes) return;
  if (first.levels.levels.empty() || first.mapping.page_bytes != place.mapping.page_bytes) return;
  const std::uint64_t before = first.levels.levels.back().reach_pages;
  const bool none = place.levels.levels.empty();
  const std::uint64_t now = none ? 0 : place.levels.levels.back().reach_pages;
  const bool same = !none && place.levels.levels.size() == first.levels.levels.size() &&
                    static_cast<double>(now) < as_far * static_cast<double>(before) &&
                    static_cast<double>(before) < as_far * static_cast<double>(now);
  verdict.push_back(
      fmt::format("{}: {} that of pieces of {}", mapping_text(place.mapping),
                  same ? "the translation reaches as far as" : "the translation differs from",
                  size_text(first.mapping.piece_bytes)));
}

void say_walks(const PlaceFinding& place, std::vector<std::string>& verdict) {
  if (!place.walks) return;
  const WalkFinding& walks = *place.walks;
  verdict.push_back(walks.walks_per_second
                        ? fmt::format("{}: at least {:.2f} G page walks/s: {}",
                                      mapping_text(place.mapping), *walks.walks_per_second * 1e-9,
                                      walks.reason)
                        : fmt::format("{}: the rate of page walks was not seen: {}",
                                      mapping_text(place.mapping), walks.reason));
}

void say_caching(const PlaceFinding& place, std::vector<std::string>& verdict) {
  if (!place.caching || place.mapping.place == MemoryPlace::local) return;
  const CachingFinding& caching = *place.caching;
  const std::string_view name = name_of(place.mapping.place);
  verdict.push_back(
      !caching.kept_in_own_l2
          ? fmt::format(
                "timing does not tell whether the card's own L2 keeps lines of {} memory: {}", name,
                caching.reason)
          : fmt::format("lines of {} memory are {}kept in the card's own L2: {}", name,
                        *caching.kept_in_own_l2 ? "" : "not ", caching.reason));
}

void say_rates(const PlaceFinding& place, std::vector<std::string>& verdict) {
  if (!place.rates) return;
  const RateTable& rates = *place.rates;
  const auto faster = [](const AccessRate& a, const AccessRate& b) {
    return a.bytes_per_second() < b.bytes_per_second();
  };
  const auto best = std::max_element(rates.by_size.begin(), rates.by_size.end(), faster);
  const auto best_sms = std::max_element(rates.by_sms.begin(), rates.by_sms.end(), faster);
  if (best == rates.by_size.end() || best_sms == rates.by_sms.end()) return;
  const auto enough =
      std::find_if(rates.by_sms.begin(), rates.by_sms.end(), [&](const AccessRate& rate) {
        return rate.bytes_per_second() >= saturated * best_sms->bytes_per_second();
      });
  verdict.push_back(fmt::format(
      "{} memory: at most {:.0f} GB/s, by {}s of {} bytes; reads of {} bytes from one SM {:.1f} "
      "GB/s; {} SMs give {:.0f} % of what reads of this size give",
      name_of(place.mapping.place), best->bytes_per_second() * 1e-9, name_of(best->traffic.kind),
      best->traffic.access_bytes, rates.by_sms.front().traffic.access_bytes,
      rates.by_sms.front().bytes_per_second() * 1e-9, enough->traffic.sms, saturated * 100));
}

void say_atomics(const PlaceFinding& place, std::vector<std::string>& verdict) {
  if (!place.rates || !place.caching) return;
  const std::string_view name = name_of(place.mapping.place);
  if (!place.rates->no_atomics.empty()) {
    verdict.push_back(
        fmt::format("{} memory: no atomics were made: {}", name, place.rates->no_atomics));
    return;
  }
  std::string atomics;
  for (const AccessRate& rate : place.rates->atomics) {
    atomics += fmt::format("{}{:.3g} G/s to {}", atomics.empty() ? "" : ", ",
                           rate.accesses_per_second * 1e-9,
                           rate.traffic.kind == Traffic::Kind::word ? "one word" : "random words");
  }
  verdict.push_back(
      fmt::format("{} memory: atomic additions {}; an addition that waits for the one before it "
                  "takes {:.0f} cycles",
                  name, atomics, place.caching->atomic_cycles.value_or(0)));
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, units[unit]);
}

std::string mapping_text(const Mapping& mapping) {
  if (mapping.place == MemoryPlace::host) {
    return fmt::format("host memory, read every {}", size_text(mapping.page_bytes));
  }
  return fmt::format("{} memory in pieces of {}, read every {}", name_of(mapping.place),
                     size_text(mapping.piece_bytes), size_text(mapping.page_bytes));
}

std::string_view name_of(Traffic::Kind kind) {
  constexpr std::array<std::string_view, 5> names = {"read", "write", "page read",
                                                     "atomic to one word", "atomic"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<std::string> verdict_of(const TranslationReport& report) {
  std::vector<std::string> verdict;
  if (!report.failure.empty()) verdict.push_back("not finished: " + report.failure);
  std::array<const PlaceFinding*, 3> first{};
  for (const PlaceFinding& place : report.places) {
    if (!place.not_measured.empty()) {
      verdict.push_back(
          fmt::format("{}: not measured: {}", mapping_text(place.mapping), place.not_measured));
      continue;
    }
    const PlaceFinding*& front = first[static_cast<std::size_t>(place.mapping.place)];
    if (front == nullptr) front = &place;
    say_levels(place, verdict);
    say_larger(place, *front, verdict);
    say_walks(place, verdict);
    say_caching(place, verdict);
    say_rates(place, verdict);
    say_atomics(place, verdict);
  }
  verdict.emplace_back(
      "a miss of the last level is a page walk, or a hit in a level that reaches beyond the "
      "measured memory; times alone do not tell which");
  return verdict;
}

}  // namespace demarc::probe
