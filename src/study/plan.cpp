// Reads modes and workloads, and decides the order in which a study runs them.
#include "demarc/study/plan.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "demarc/base/near_names.hpp"
#include "demarc/base/random.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/base/split.hpp"
#include "demarc/study/statistics.hpp"
#include "demarc/workload/workload.hpp"
#include "workload_spec.hpp"

namespace demarc::study {
namespace {

template <class T>
void shuffle_with(Random& random, std::vector<T>& items) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random.below(i)]);
  }
}

std::vector<std::size_t> indices_to(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

Result<void> check_unique(const std::vector<Workload>& workloads, std::string_view what) {
  if (workloads.empty()) return invalid_input("the study has no {}; name at least one", what);
  std::set<std::string> seen;
  for (const Workload& w : workloads) {
    if (!seen.insert(w.name).second) {
      return invalid_input("{} '{}' is named twice: give each once", what, w.name);
    }
  }
  return {};
}

struct LaunchesName {
  Launches launches;
  std::string_view suffix;
};
// A suffix that ends with another one comes before it.
constexpr LaunchesName launches_names[] = {{Launches::overlapped_graph, "+graph+overlapped"},
                                           {Launches::graph, "+graph"},
                                           {Launches::overlapped, "+overlapped"},
                                           {Launches::fused, "+fused"}};

constexpr std::string_view common_domain_suffix = "+common-domain";
constexpr std::string_view windows_suffix = "+windows";

// Why a command would run outside of its part under this mode; empty: it does not.
std::string_view outside_with_commands(const Mode& mode) {
  if (mode.color) return "a command's memory has no colours";
  if (mode.launches != Launches::separate) {
    return "such a victim can be confined only next to kernels of its own process";
  }
  return mode.traits().without_commands;
}

Result<void> check_commands_stay(const Plan& plan) {
  const Workload* const command = first_command(plan);
  if (command == nullptr) return {};
  for (const Mode& mode : plan.modes) {
    const auto why = outside_with_commands(mode);
    if (why.empty()) continue;
    return invalid_input(
        "--modes: '{}' cannot keep the command '{}' inside a part of the GPU: {}; modes for "
        "commands are {}",
        mode.name(), command->name, why, modes_for_commands());
  }
  return {};
}

// Cuts `suffix` off the end of `text`; whether it was there.
bool take_suffix(std::string& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

Result<Mode> parse_one_mode(std::string_view item, std::string_view option) {
  std::string name(item);
  Mode mode;
  mode.common_domain = take_suffix(name, common_domain_suffix);
  for (const LaunchesName& known : launches_names) {
    if (!take_suffix(name, known.suffix)) continue;
    mode.launches = known.launches;
    break;
  }
  mode.windows = take_suffix(name, windows_suffix);
  mode.color = mode.windows || take_suffix(name, "+color") || take_suffix(name, "+colour");
  const auto division = partition::parse_mode(name);
  if (!division) {
    std::vector<std::string> known;
    for (const partition::Mode one : partition::all_modes()) {
      known.emplace_back(to_string(one));
      if (partition::traits_of(one).colors) known.push_back(known.back() + "+color");
    }
    return invalid_input("{}: '{}' is not a mode{}, and demarc isolate --help what can follow them",
                         option, item, did_you_mean(name, known, "demarc list modes"));
  }
  mode.division = *division;
  const partition::ModeTraits& traits = mode.traits();
  if (traits.leased && mode != Mode{mode.division}) {
    return invalid_input(
        "{}: '{}': nothing can be appended to {}, because its parts have colours and memory "
        "synchronisation domains, and launches of programs are not changed",
        option, item, name);
  }
  if (mode.color && !traits.colors && !traits.across_processes) {
    return invalid_input(
        "{}: '{}': {} has no variant with colours; {} have one", option, item, name,
        partition::mode_names([](const partition::ModeTraits& row) { return row.colors; }, ", "));
  }
  if ((mode.color && !traits.colors) ||
      (mode.launches != Launches::separate && traits.across_processes)) {
    return invalid_input(
        "{}: '{}': parts of {} are processes, which have neither colours nor changed launches",
        option, item, name);
  }
  return mode;
}

// "dir/mm.json" -> "mm", "dir/x.txt" -> "x.txt"
std::string name_of_file(const std::string& path) {
  const std::filesystem::path file = std::filesystem::path(path).filename();
  return file.extension() == ".json" ? file.stem() : file;
}

// "launch:dir/mm.json" -> "mm", "launch:dir/mm.json@large" -> "mm@large", "stream:dir/x.txt" ->
// "x.txt", "cmd:python3 train.py" -> "python3 train.py".
Result<std::string> display_name(std::string_view text) {
  DEMARC_TRY(const WorkloadSpec spec, parse_workload_spec(text));
  if (const auto* command = std::get_if<CommandSpec>(&spec)) return command->line;
  if (const auto* stream = std::get_if<StreamSpec>(&spec)) return name_of_file(stream->path);
  const auto* launch = std::get_if<LaunchSpec>(&spec);
  if (launch == nullptr) return std::string(text);
  return name_of_file(launch->path) + (launch->scale.empty() ? "" : "@" + launch->scale);
}

}  // namespace

Workload command_workload(const std::string& line) {
  return {line, std::string(command_prefix) + line};
}

bool is_command(const Workload& workload) {
  const auto spec = parse_workload_spec(workload.spec);
  return spec && std::holds_alternative<CommandSpec>(*spec);
}

const Workload* first_command(const Plan& plan) {
  for (const auto* list : {&plan.victims, &plan.aggressors}) {
    const auto found = std::find_if(list->begin(), list->end(), is_command);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

std::string words_on_commands(const Plan& plan) {
  if (std::none_of(plan.victims.begin(), plan.victims.end(), is_command)) return "";
  return "A time of a command is that of a run, from its first kernel launch to its end.";
}

std::string modes_for_commands() {
  return partition::mode_names(
      [](const partition::ModeTraits& traits) { return traits.without_commands.empty(); }, ",");
}

std::string Mode::name() const {
  std::string out(partition::to_string(division));
  if (color) out += windows ? windows_suffix : "+color";
  for (const LaunchesName& known : launches_names) {
    if (known.launches == launches) out += known.suffix;
  }
  if (common_domain) out += common_domain_suffix;
  return out;
}

Result<std::vector<Mode>> parse_modes(std::string_view text, std::string_view option) {
  std::vector<Mode> modes;
  for (const std::string_view item : split_at(text, ',')) {
    DEMARC_TRY(Mode mode, parse_one_mode(item, option));
    if (std::find(modes.begin(), modes.end(), mode) != modes.end()) {
      return invalid_input("{}: '{}' is named twice", option, item);
    }
    modes.push_back(mode);
  }
  return modes;
}

std::string meaning_of(const Workload& workload) {
  const auto spec = parse_workload_spec(workload.spec);
  if (!spec) return {};
  if (const auto* copy = std::get_if<CopySpec>(&*spec)) {
    return copy->to_card ? "copies to the card by its copy engine"
                         : "copies from the card by its copy engine";
  }
  const auto* bundled = std::get_if<BundledSpec>(&*spec);
  if (bundled == nullptr) return {};
  const auto found = workload::find(bundled->name);
  return found ? (*found)->summary : std::string();
}

Result<void> check_bundled(const std::vector<Workload>& workloads, std::string_view option) {
  for (const Workload& workload : workloads) {
    DEMARC_TRY(const WorkloadSpec spec, parse_workload_spec(workload.spec));
    const auto* bundled = std::get_if<BundledSpec>(&spec);
    if (bundled == nullptr) continue;
    const auto found = workload::find(bundled->name);
    if (!found) return invalid_input("{}: {}", option, found.error().message);
  }
  return {};
}

Result<std::vector<Workload>> parse_workloads(std::string_view text, std::string_view option) {
  std::vector<Workload> workloads;
  for (const std::string_view item : split_at(text, ',')) {
    const auto named = display_name(item);
    if (!named) return invalid_input("{}: {}", option, named.error().message);
    const std::string& name = *named;
    if (name.empty()) {
      return invalid_input("{}: an entry of '{}' is empty; separate names by commas", option, text);
    }
    for (const Workload& w : workloads) {
      if (w.name == name) return invalid_input("{}: '{}' is named twice", option, name);
    }
    workloads.push_back({name, std::string(item)});
  }
  return workloads;
}

Result<void> check_plan(const Plan& plan) {
  if (plan.parts < 2 || plan.parts > 4) {
    return invalid_input("--parts: {} is out of range; a GPU is divided into 2, 3 or 4 parts",
                         plan.parts);
  }
  if (plan.modes.empty()) return invalid_input("--modes: no mode is named");
  constexpr std::uint32_t max_rounds = 1000;
  if (plan.rounds == 0 || plan.rounds > max_rounds) {
    return invalid_input("--rounds: {} is out of range; it is 1 to {}", plan.rounds, max_rounds);
  }
  const StoppingRule& rule = plan.rule;
  constexpr std::uint32_t max_warm_up = 100000;
  if (rule.warm_up > max_warm_up) {
    return invalid_input("--warm-up: {} launches are too many; at most {}", rule.warm_up,
                         max_warm_up);
  }
  if (rule.least == 0 || rule.least > rule.most) {
    return invalid_input(
        "--samples: from {} to {} samples per visit are not possible; the first number must be at "
        "least 1 and not above the second",
        rule.least, rule.most);
  }
  DEMARC_CHECK(check_unique(plan.victims, "victim"));
  DEMARC_CHECK(check_unique(plan.aggressors, "aggressor"));
  return check_commands_stay(plan);
}

void carry_p99(Plan& plan) {
  const auto runs = static_cast<std::uint32_t>(p99_least_runs);
  const std::uint32_t a_visit = ceil_div(runs, plan.rounds);
  plan.rule.least = std::max(plan.rule.least, a_visit);
  plan.rule.most = std::max(plan.rule.most, plan.rule.least);
}

std::vector<std::size_t> mode_order(const Plan& plan) {
  Random random(plan.seed);
  auto order = indices_to(plan.modes.size());
  shuffle_with(random, order);
  return order;
}

std::vector<Visit> visit_order(const Plan& plan, std::size_t mode, std::uint32_t round) {
  // One stream of random numbers a (seed, mode, round), so that leaving out a mode moves no other.
  Random random(plan.seed * 0x9e3779b97f4a7c15U + mode * 0x10001U + round + 1);
  auto victims = indices_to(plan.victims.size());
  shuffle_with(random, victims);
  std::vector<Visit> visits;
  for (const std::size_t victim : victims) {
    auto neighbours = indices_to(plan.aggressors.size() + 1);  // the last one stands for idle
    shuffle_with(random, neighbours);
    for (const std::size_t neighbour : neighbours) {
      visits.push_back({victim, neighbour == plan.aggressors.size()
                                    ? std::nullopt
                                    : std::optional<std::size_t>(neighbour)});
    }
  }
  return visits;
}

std::vector<PlannedVisit> planned_visits(const Plan& plan) {
  std::vector<PlannedVisit> visits;
  for (std::size_t victim = 0; victim < plan.victims.size(); ++victim) {
    visits.push_back({std::nullopt, {victim, std::nullopt}});
  }
  for (const std::size_t mode : mode_order(plan)) {
    for (const Visit& visit : visit_order(plan, mode, 0)) visits.push_back({mode, visit});
  }
  return visits;
}

}  // namespace demarc::study
