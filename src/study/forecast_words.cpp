// Puts a forecast into sentences: who presses hardest, who has something to lose.
#include <algorithm>

#include "demarc/study/forecast.hpp"

namespace demarc::study {
namespace {

double pressure_of(const WorkloadForecast& one) {
  return std::max(one.dram_demand_share, one.l2_demand_share);
}

std::string joined_words(const std::vector<std::string>& items) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += i + 1 == items.size() ? " and " : ", ";
    out += items[i];
  }
  return out;
}

std::string demand_words(const WorkloadForecast& one) {
  return fmt::format("{:.0f} % of the DRAM's bandwidth, {:.0f} % of the L2's",
                     100 * one.dram_demand_share, 100 * one.l2_demand_share);
}

const WorkloadForecast* hardest(const Forecast& forecast) {
  const WorkloadForecast* worst = nullptr;
  for (const WorkloadForecast& one : forecast.aggressors) {
    if (one.missing.empty() && (worst == nullptr || pressure_of(one) > pressure_of(*worst))) {
      worst = &one;
    }
  }
  return worst;
}

// Names while they are few, else how many of them.
std::string few_words(const std::vector<std::string>& names, std::size_t of, const char* what) {
  constexpr std::size_t max_named = 4;
  if (names.size() <= max_named) return joined_words(names);
  if (names.size() == of) return fmt::format("all {} {}", of, what);
  return fmt::format("{} of {} {}", names.size(), of, what);
}

struct Named {
  std::vector<std::string> names;
  bool forecast = true;
};

// Those of which the forecast says so; where it says so of none, those it does not know.
Named those_that(bool (*hold)(const WorkloadForecast&), const std::vector<WorkloadForecast>& rows) {
  Named known;
  Named unknown{{}, false};
  for (const WorkloadForecast& row : rows) {
    if (hold(row)) (row.missing.empty() ? known : unknown).names.push_back(row.name);
  }
  return known.names.empty() && !unknown.names.empty() ? unknown : known;
}

// "va presses", "va and fwt press"; "va may press" where nothing is known of it.
std::string said_of(const Named& who, std::size_t of, const char* what, std::string_view verb,
                    std::string_view third_person) {
  const bool one = who.forecast && who.names.size() == 1;
  return fmt::format("{}{} {}", few_words(who.names, of, what), who.forecast ? "" : " may",
                     one ? third_person : verb);
}

// What half the memory costs the victims that feel it, or that none does.
std::string memory_sentence(const Forecast& forecast) {
  std::vector<std::string> losers;
  bool any = false;
  bool whole = true;
  for (const WorkloadForecast& victim : forecast.victims) {
    if (!victim.missing.empty()) continue;
    any = true;
    whole = whole && victim.complete;
    if (victim.half_memory_slowdown > noted_slowdown) {
      losers.push_back(fmt::format("{} takes {:.2f}x", victim.name, victim.half_memory_slowdown));
    }
  }
  if (!any) return {};
  if (losers.empty()) {
    return fmt::format(" With half of the memory no victim takes more than {:.2f}x as long{}.",
                       noted_slowdown, whole ? "" : ", as far as beginnings can tell");
  }
  return fmt::format(" With half of the memory {} as long.", joined_words(losers));
}

std::string unknown_sentence(const Forecast& forecast) {
  std::vector<std::string> names;
  for (const WorkloadForecast* row : rows_of(forecast)) {
    if (!row->missing.empty()) names.push_back(row->name);
  }
  return names.empty() ? std::string() : fmt::format(" Not forecast: {}.", joined_words(names));
}

// The first of the plan's modes that divides the SMs as far as is known best, with the memory or
// without.
const Mode* best_mode(const Plan& plan, bool color) {
  const Mode* best = nullptr;
  for (const Mode& mode : plan.modes) {
    const std::uint32_t rank = mode.traits().forecast_rank;
    if (rank == 0 || mode.color != color || mode.windows) continue;
    if (best == nullptr || rank < best->traits().forecast_rank) best = &mode;
  }
  return best;
}

}  // namespace

bool presses(const WorkloadForecast& aggressor) {
  return !aggressor.missing.empty() || pressure_of(aggressor) >= pressing_share;
}

bool exposed(const WorkloadForecast& victim) {
  return !victim.missing.empty() || pressure_of(victim) >= exposed_share;
}

std::vector<const WorkloadForecast*> rows_of(const Forecast& forecast) {
  std::vector<const WorkloadForecast*> rows;
  for (const auto* list : {&forecast.victims, &forecast.aggressors}) {
    for (const WorkloadForecast& one : *list) {
      const bool listed = std::any_of(rows.begin(), rows.end(),
                                      [&](const auto* row) { return row->spec == one.spec; });
      if (!listed) rows.push_back(&one);
    }
  }
  return rows;
}

std::string forecast_words(const Forecast& forecast) {
  std::string out;
  if (const WorkloadForecast* worst = hardest(forecast)) {
    out =
        fmt::format("By forecast {} loads the memory most: {}.", worst->name, demand_words(*worst));
  }
  std::string l2 = memory_sentence(forecast);  // " With half ..."
  if (out.empty() && !l2.empty()) {
    l2[1] = 'w';
    out = "By forecast";
  }
  out += l2;
  if (!out.empty()) out += unknown_sentence(forecast);
  return out;
}

std::string recommend(const Plan& plan, const Forecast& forecast) {
  if (!forecast.missing.empty()) return fmt::format("No forecast: {}.", forecast.missing);
  const Named pressing = those_that(presses, forecast.aggressors);
  const Named victims = those_that(exposed, forecast.victims);
  const bool divide_memory = !pressing.names.empty() && !victims.names.empty();
  const Mode* chosen = best_mode(plan, divide_memory);
  std::string out;
  if (chosen == nullptr) {
    out = divide_memory
              ? "None of the chosen modes divides SMs and memory; add mask+color to --modes:"
              : "None of the chosen modes divides the SMs alone; add mask to --modes:";
  } else {
    out = fmt::format("Nothing was measured; the forecast recommends {}:", chosen->name());
  }
  if (divide_memory) {
    out +=
        fmt::format(" {} on the memory that {}.",
                    said_of(pressing, forecast.aggressors.size(), "aggressors", "press", "presses"),
                    said_of(victims, forecast.victims.size(), "victims", "need", "needs"));
  } else if (pressing.names.empty()) {
    out += fmt::format(
        " no aggressor asks for {:.0f} % of the DRAM's or the L2's bandwidth, and every victim "
        "keeps the whole L2.",
        100 * pressing_share);
  } else {
    out += fmt::format(" no victim asks for {:.0f} % of the DRAM's or the L2's bandwidth.",
                       100 * exposed_share);
  }
  return out + " " + forecast_words(forecast);
}

std::string forecast_text(const Forecast& forecast) {
  if (!forecast.missing.empty()) return fmt::format("No forecast: {}.\n", forecast.missing);
  std::string out = fmt::format(
      "Forecast from PTX for {}: each workload alone on the whole GPU, over and over.\n"
      "  DRAM, L2: share of their bandwidth it asks for; hits: in the L2, in half of it; half "
      "mem:\n"
      "  slowdown by half of the L2 and of the bandwidths, on half of the SMs\n"
      "  {:<12} {:>7} {:>7} {:>8} {:>8} {:>8}\n",
      forecast.device, "workload", "DRAM %", "L2 %", "hits %", "half %", "half mem");
  for (const WorkloadForecast* row : rows_of(forecast)) {
    if (!row->missing.empty()) {
      out += fmt::format("  {:<12} none: {}\n", row->name, row->missing);
      continue;
    }
    out += fmt::format("  {:<12} {:>7.1f} {:>7.1f} {:>8.1f} {:>8.1f} {:>7.2f}x{}\n", row->name,
                       100 * row->dram_demand_share, 100 * row->l2_demand_share,
                       100 * row->l2_hit_rate, 100 * row->half_l2_hit_rate,
                       row->half_memory_slowdown, row->complete ? "" : "  of its beginning");
  }
  return out;
}

}  // namespace demarc::study
