// Makes one visit to a cell: times a victim beside its neighbours, and compares its outputs.
#include "visit.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

namespace demarc::study {
namespace {

using VisitClock = std::chrono::steady_clock;

double seconds_since(VisitClock::time_point start) {
  return std::chrono::duration<double>(VisitClock::now() - start).count();
}

// What is wrong with `seen` beside the solo run, or nothing.
std::string output_fault(const Outputs& seen, const Outputs& solo) {
  if (!seen.mismatch.empty()) return seen.mismatch;
  if (solo.exact && seen.digest != solo.digest) {
    return fmt::format("outputs have digest {:016x}, those of its solo run {:016x}", seen.digest,
                       solo.digest);
  }
  return {};
}

// The loaded aggressor at work in lanes 1 ... n-1.
class AggressorsRunning {
 public:
  static Result<AggressorsRunning> begin(Stage& stage) {
    AggressorsRunning running(stage);
    for (std::uint32_t i = 1; i < stage.lanes(); ++i) {
      DEMARC_CHECK(stage.lane(i).start());
      running.started_ = i;
    }
    return running;
  }
  AggressorsRunning(AggressorsRunning&& other) noexcept
      : stage_(other.stage_), started_(std::exchange(other.started_, 0)) {}
  AggressorsRunning& operator=(AggressorsRunning&&) = delete;
  ~AggressorsRunning() {
    for (; started_ > 0; --started_) (void)stage_->lane(started_).stop();
  }

  // From here to check_work() they must be at work.
  Result<void> visit_begins() {
    for (std::uint32_t i = 1; i < stage_->lanes(); ++i) {
      DEMARC_CHECK(stage_->lane(i).visit_begins());
    }
    return {};
  }
  Result<void> check_work() {
    for (std::uint32_t i = 1; i < stage_->lanes(); ++i) {
      DEMARC_CHECK(stage_->lane(i).visit_ended());
    }
    return {};
  }

  // Stops them all; puts finished runs a second over all lanes, and remarks, into the cell.
  Result<void> end(Cell& cell) {
    cell.aggressor_rate = 0;
    Result<void> outcome;
    for (; started_ > 0; --started_) {
      Lane& lane = stage_->lane(started_);
      auto stopped = lane.stop();
      if (stopped) {
        cell.aggressor_rate += *stopped;
      } else if (outcome) {
        outcome = tl::unexpected(std::move(stopped).error());
      }
      if (auto remark = lane.remark(); !remark.empty()) cell.remarks.push_back(std::move(remark));
    }
    return outcome;
  }

 private:
  explicit AggressorsRunning(Stage& stage) : stage_(&stage) {}
  Stage* stage_;
  std::uint32_t started_ = 0;  // lanes 1 ... started_ run
};

// An error of a workload: the cell's if a command failed or was not at work, else the mode's.
Result<void> error_of(const Workload& workload, Result<void> outcome, Cell& cell) {
  if (outcome || !is_command(workload) || outcome.error().kind != ErrorKind::check_failed) {
    return outcome;
  }
  if (cell.error.empty()) cell.error = std::move(outcome).error().message;
  return {};
}

// A workload that a lane does not take leaves the lane as it was, so other cells can run. A failed
// check, such as a worker that died, ends the mode.
Result<void> load_error(const Result<void>& loaded, Cell& cell) {
  if (loaded.error().kind == ErrorKind::check_failed) return loaded;
  const bool lacking = loaded.error().kind == ErrorKind::missing_capability;
  (lacking ? cell.not_run : cell.error) = loaded.error().message;
  return {};
}

Result<void> check_outputs(Lane& victim, const Outputs& solo, Cell& cell) {
  DEMARC_TRY(const Outputs seen, victim.outputs());
  if (cell.error.empty()) cell.error = output_fault(seen, solo);
  return {};
}

}  // namespace

Result<std::uint32_t> warm_up(Lane& lane, const StoppingRule& rule) {
  if (rule.warm_up == 0) return 0U;
  DEMARC_TRY(const auto thrown_away, lane.sample(rule.warm_up, rule.longest_seconds / 4));
  return static_cast<std::uint32_t>(thrown_away.size());
}

Result<void> take_samples(Lane& lane, const StoppingRule& rule, std::vector<double>& into,
                          std::vector<double>& runs) {
  const auto start = VisitClock::now();
  std::vector<double> visit;
  const auto seconds = [&] {
    if (!lane.computes_times()) return seconds_since(start);
    return std::accumulate(visit.begin(), visit.end(), 0.0) / 1e9;
  };
  while (true) {
    const std::size_t wanted = visit.size() < rule.least
                                   ? rule.least - visit.size()
                                   : std::min<std::size_t>(rule.least, rule.most - visit.size());
    const double left = rule.longest_seconds - seconds();
    if (wanted == 0 || (left <= 0 && !visit.empty())) break;
    DEMARC_TRY(const auto batch,
               lane.sample(static_cast<std::uint32_t>(wanted), std::max(left, 0.001)));
    if (batch.empty()) return check_failed("the victim's lane gave no times");
    visit.insert(visit.end(), batch.begin(), batch.end());
    const auto with_gaps = lane.last_runs();
    runs.insert(runs.end(), with_gaps.begin(), with_gaps.end());
    if (visit.size() >= rule.least && relative_precision(describe(visit)) <= rule.precision) break;
  }
  into.insert(into.end(), visit.begin(), visit.end());
  return {};
}

Result<Outputs> solo_outputs(Lane& lane, const Workload& victim) {
  DEMARC_CHECK(lane.load(victim));
  DEMARC_TRY(Outputs outputs, lane.outputs());
  if (!outputs.mismatch.empty()) {
    return check_failed("victim '{}' alone on the whole GPU already computes a wrong result: {}",
                        victim.name, outputs.mismatch);
  }
  return outputs;
}

Result<void> visit_cell(const StoppingRule& rule, Stage& stage, const VisitPair& pair, Cell& cell) {
  Lane& victim = stage.lane(0);
  if (auto loaded = victim.load(*pair.victim); !loaded) return load_error(loaded, cell);
  const auto of_victim = [&](Result<void> outcome) {
    return error_of(*pair.victim, std::move(outcome), cell);
  };
  const auto of_aggressor = [&](Result<void> outcome) {
    return error_of(*pair.aggressor, std::move(outcome), cell);
  };
  std::optional<AggressorsRunning> running;
  if (pair.aggressor != nullptr) {
    for (std::uint32_t i = 1; i < stage.lanes(); ++i) {
      if (auto loaded = stage.lane(i).load(*pair.aggressor); !loaded) {
        return load_error(loaded, cell);
      }
    }
    auto begun = AggressorsRunning::begin(stage);
    if (!begun) return of_aggressor(tl::unexpected(begun.error()));
    running.emplace(std::move(*begun));
  }
  for (std::uint32_t i = 1; i < stage.lanes() && !running; ++i) DEMARC_CHECK(stage.rest(i));
  const auto discarded = warm_up(victim, rule);
  if (!discarded) return of_victim(tl::unexpected(discarded.error()));
  cell.discarded += *discarded;
  if (running) {
    if (auto begins = running->visit_begins(); !begins) return of_aggressor(std::move(begins));
  }
  const auto timed = take_samples(victim, rule, cell.samples_ns, cell.runs_ns);
  DEMARC_CHECK(of_victim(timed));
  if (running) DEMARC_CHECK(of_aggressor(running->check_work()));
  // Its outputs too, beside the aggressor.
  if (timed) DEMARC_CHECK(of_victim(check_outputs(victim, *pair.solo, cell)));
  return running ? of_aggressor(running->end(cell)) : Result<void>{};
}

Result<void> finish_lanes(Stage& stage) {
  for (std::uint32_t i = 0; i < stage.lanes(); ++i) DEMARC_CHECK(stage.lane(i).finish());
  return {};
}

}  // namespace demarc::study
