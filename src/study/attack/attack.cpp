// Runs the hunt: screens generations of neighbours, and measures the worst again.
#include "demarc/study/attack.hpp"

#include <algorithm>
#include <utility>

#include "attack/breeder.hpp"
#include "attack/ground.hpp"
#include "attack/slowdowns.hpp"

namespace demarc::study {
namespace {

class Hunt {
 public:
  Hunt(const AttackPlan& plan, Ground ground, Executor& executor, const Progress& progress,
       const AttackClock& clock)
      : plan_(plan),
        ground_(std::move(ground)),
        progress_(progress),
        clock_(clock),
        begun_(clock()),
        breeder_(plan, ground_.means()) {
    result_.plan = plan;
    result_.device = executor.context();
    result_.account = ground_.account();
    result_.means = ground_.means();
  }

  Result<AttackResult> run() {
    auto ended = search();
    if (ended) ended = prove();
    if (ended) ended = ground_.finish();
    if (!ended && ended.error().kind != ErrorKind::check_failed) {
      return tl::unexpected(ended.error());
    }
    if (!ended) result_.failure = ended.error().message;
    result_.refusals = refusals_.all();
    std::stable_sort(result_.refusals.begin(), result_.refusals.end(),
                     [](const Refusal& a, const Refusal& b) { return a.what < b.what; });
    name_untried();
    if (result_.failure.empty() && result_.screened.empty()) return nothing_ran();
    std::stable_sort(result_.ranked.begin(), result_.ranked.end(), hurts_more);
    result_.verdict = judge();
    result_.ranked.resize(std::min(result_.ranked.size(), plan_.keep));
    report_progress(progress_, 1.0, "done");
    return std::move(result_);
  }

 private:
  // Operations and patterns of the neighbours that ran.
  template <class Part>
  bool tried(Part Neighbour::*part, Part value) const {
    return std::any_of(result_.screened.begin(), result_.screened.end(),
                       [&](const Screened& one) { return one.genes.*part == value; });
  }

  bool time_is_up() const { return clock_() - begun_ >= plan_.seconds; }

  Result<void> search() {
    DEMARC_CHECK(screen(breeder_.first(refusals_)));
    DEMARC_CHECK(cover());
    covered_ = true;
    std::size_t refused = 0;  // generations, one after the other
    while (result_.screened.size() < plan_.candidates && !time_is_up() &&
           refused < max_refused_generations) {
      const std::size_t before = result_.screened.size();
      const std::size_t left = plan_.candidates - result_.screened.size();
      const auto children =
          breeder_.next(result_.screened, std::min(plan_.generation, left), refusals_);
      if (children.empty()) break;  // there is nothing new
      DEMARC_CHECK(screen(children));
      refused = result_.screened.size() > before ? 0 : refused + 1;
    }
    return {};
  }

  // A lane can refuse what its means allow, a footprint for one: what is not covered for that is
  // drawn again, a few times.
  Result<void> cover() {
    constexpr int attempts = 4;
    for (int i = 0; i < attempts && result_.complete; ++i) {
      std::vector<Neighbour> more;
      const auto take = [&](const std::vector<Neighbour>& found) {
        more.insert(more.end(), found.begin(), found.end());
      };
      for (const OperationRow& row : operations()) {
        if (!tried(&Neighbour::operation, row.operation)) {
          take(breeder_.another(row.operation, refusals_));
        }
      }
      for (const PatternRow& row : patterns()) {
        if (!tried(&Neighbour::pattern, row.pattern))
          take(breeder_.another(row.pattern, refusals_));
      }
      if (more.empty()) return {};
      DEMARC_CHECK(screen(more));
    }
    return {};
  }

  // As many at a time as a generation has. The first neighbours, cut short, are no hunt.
  Result<void> screen(const std::vector<Neighbour>& neighbours) {
    for (std::size_t at = 0; at < neighbours.size(); at += plan_.generation) {
      if (time_is_up()) {
        result_.complete = result_.complete && covered_;
        return {};
      }
      const std::size_t end = std::min(at + plan_.generation, neighbours.size());
      DEMARC_CHECK(screen_batch({neighbours.begin() + static_cast<std::ptrdiff_t>(at),
                                 neighbours.begin() + static_cast<std::ptrdiff_t>(end)}));
    }
    return {};
  }

  Result<void> screen_batch(const std::vector<Neighbour>& neighbours) {
    std::vector<Candidate> candidates;
    for (const Neighbour& genes : neighbours) {
      DEMARC_TRY(auto made, ground_.candidate(genes, ++drawn_));
      candidates.push_back(std::move(made));
    }
    const double share =
        static_cast<double>(result_.screened.size()) / static_cast<double>(plan_.candidates);
    report_progress(progress_, 0.9 * std::min(share, 1.0),
                    fmt::format("generation {}, {} neighbours screened", result_.generations + 1,
                                result_.screened.size()));
    DEMARC_TRY(const Measured seen,
               ground_.measure(candidates, plan_.screening, 1, plan_.seed + drawn_, {}));
    ++result_.generations;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!seen.refused[i].empty()) {
        refusals_.add(std::string(row_of(candidates[i].genes.operation).name), seen.refused[i]);
        continue;
      }
      RankedNeighbour first_look = slowdowns_of(seen, i, plan_.kernels_alone);
      Screened one{
          candidates[i].genes,    candidates[i].workload.name, candidates[i].workload.spec, 0, 0,
          result_.screened.size()};
      const Slowdown& worst = first_look.slowdowns[first_look.worst_mean];
      one.percent = first_look.wrong.empty() ? worst.mean_percent.value : wrong_percent;
      one.victim = worst.victim;
      result_.screened.push_back(std::move(one));
    }
    return {};
  }

  // The worst again, with fresh samples, `keep` at a time: until the limit is known to be broken,
  // or none is left that seemed to break it.
  Result<void> prove() {
    std::vector<Screened> order = result_.screened;
    std::stable_sort(order.begin(), order.end(),
                     [](const Screened& a, const Screened& b) { return a.percent > b.percent; });
    std::size_t at = 0;
    while (at < order.size()) {
      if (at > 0 && (broken() || !above_limit(order[at]))) break;
      const std::size_t end = std::min(at + plan_.keep, order.size());
      report_progress(progress_, 0.9, fmt::format("the worst again: {} to {}", at + 1, end));
      DEMARC_CHECK(prove_batch({order.begin() + static_cast<std::ptrdiff_t>(at),
                                order.begin() + static_cast<std::ptrdiff_t>(end)}));
      at = end;
    }
    for (; at < order.size(); ++at) result_.uncleared += above_limit(order[at]);
    return {};
  }

  Result<void> prove_batch(const std::vector<Screened>& worst) {
    std::vector<Candidate> candidates;
    candidates.reserve(worst.size());
    for (const Screened& one : worst) candidates.push_back({one.genes, {one.name, one.spec}});
    DEMARC_TRY(const Measured seen,
               ground_.measure(candidates, plan_.proof, plan_.rounds,
                               plan_.seed + proof_seed + result_.ranked.size(), {}));
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!seen.refused[i].empty()) {  // it ran before
        return check_failed("{} cannot be measured again: {}", worst[i].name, seen.refused[i]);
      }
      RankedNeighbour ranked = slowdowns_of(seen, i, plan_.kernels_alone);
      ranked.screened = worst[i];
      result_.ranked.push_back(std::move(ranked));
    }
    return {};
  }

  bool breaks(const RankedNeighbour& one) const {
    return !one.wrong.empty() ||
           slowdown_of(one.slowdowns[one.worst_mean].mean_percent.value) > plan_.max_slowdown ||
           slowdown_of(judged_by(one.slowdowns[one.worst_tail].tail).percent) >
               plan_.max_tail_slowdown;
  }
  bool above_limit(const Screened& one) const {
    return slowdown_of(one.percent) > plan_.max_slowdown;
  }
  bool broken() const {
    return std::any_of(result_.ranked.begin(), result_.ranked.end(),
                       [&](const RankedNeighbour& one) { return breaks(one); });
  }

  Verdict judge() const {
    if (broken()) return Verdict::not_held;
    return result_.complete && result_.failure.empty() ? Verdict::held : Verdict::undecided;
  }

  void name_untried() {
    for (const OperationRow& row : operations()) {
      if (!tried(&Neighbour::operation, row.operation)) result_.untried.emplace_back(row.name);
    }
    for (const PatternRow& row : patterns()) {
      if (!tried(&Neighbour::pattern, row.pattern)) result_.untried.emplace_back(row.name);
    }
  }

  Result<AttackResult> nothing_ran() const {
    if (!result_.complete) {
      return check_failed("--seconds {}: the time ended before the first neighbour ran",
                          plan_.seconds);
    }
    std::string reasons;
    for (const Refusal& refusal : result_.refusals) {
      reasons += fmt::format("\n  {}: {}", refusal.what, refusal.reason);
    }
    return missing_capability("no neighbour can run here:{}", reasons);
  }

  // A victim that computes something else is worse than any that is slow.
  static constexpr double wrong_percent = 1e9;
  // Lanes that took nothing in so many generations will take nothing.
  static constexpr std::size_t max_refused_generations = 8;
  static constexpr std::uint64_t proof_seed = std::uint64_t{1} << 32U;

  const AttackPlan& plan_;
  Ground ground_;
  const Progress& progress_;
  const AttackClock& clock_;
  double begun_;
  Breeder breeder_;
  Refusals refusals_;
  std::size_t drawn_ = 0;
  bool covered_ = false;  // the first neighbours are through
  AttackResult result_;
};

Result<void> check_attack(const AttackPlan& plan) {
  if (plan.candidates < least_candidates()) {
    return invalid_input(
        "--candidates {}: the first generation has one of every operation and of every pattern, {} "
        "neighbours; give at least that number",
        plan.candidates, least_candidates());
  }
  if (plan.keep == 0 || plan.generation == 0) {
    return invalid_input("--keep and --generation: at least one neighbour is needed");
  }
  for (const auto& [option, limit] : {std::pair{"--max-slowdown", plan.max_slowdown},
                                      {"--max-p99-slowdown", plan.max_tail_slowdown}}) {
    if (limit >= 1) continue;
    return invalid_input("{} {}: a slowdown is a factor of 1 or more, such as 1.05", option, limit);
  }
  const auto left_out = [&](const OperationRow& row) {
    return std::find(plan.without.begin(), plan.without.end(), row.operation) != plan.without.end();
  };
  if (std::all_of(operations().begin(), operations().end(), left_out)) {
    return invalid_input("--without leaves no operation for a neighbour");
  }
  const Launches launches = plan.mode.launches;
  if (plan.kernels_alone &&
      (launches == Launches::graph || launches == Launches::overlapped_graph)) {
    return invalid_input(
        "{} does not support --kernels-alone, because it times only whole runs; leave the option "
        "out, or take a mode without +graph",
        plan.mode.name());
  }
  if (plan.screening.least == 0) {
    return invalid_input("--screen: at least one launch is needed next to each neighbour");
  }
  return {};
}

}  // namespace

std::size_t least_candidates() {
  return operations().size() + patterns().size();
}

Result<AttackResult> run_attack(const AttackPlan& plan, Executor& executor,
                                const Progress& progress, const AttackClock& clock) {
  DEMARC_CHECK(check_attack(plan));
  DEMARC_TRY(Ground ground, Ground::open(plan, executor));
  return Hunt(plan, std::move(ground), executor, progress, clock).run();
}

}  // namespace demarc::study
