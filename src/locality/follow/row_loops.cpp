// Follows all trips of a loop at once. The values at the header are taken to be linear in the
// number of the trip, as the trip before suggests. One trip with such values shows whether this is
// so. The others are varying; this does no harm if each trip sets them again before it uses them.
#include <algorithm>
#include <optional>

#include "demarc/base/hash.hpp"
#include "follow/row_walk.hpp"

namespace demarc::locality {
namespace {

// Attempts that a loop is worth which never was closed.
constexpr std::uint32_t max_failures = 4;
constexpr int max_guesses = 8;
// For a path; Run::step counts them.
constexpr std::uint64_t max_steps = std::uint64_t{1} << 31U;

// The first trip in which the predicate has that value, if there is one.
std::optional<std::uint64_t> first_trip(const Trips& predicate, bool wanted) {
  const bool inside = predicate.inverted != wanted;  // is it that value within begin .. end - 1?
  if (predicate.begin >= predicate.end)
    return inside ? std::nullopt : std::optional<std::uint64_t>(0);
  if (inside) return predicate.begin;
  return predicate.begin > 0 ? 0 : predicate.end;
}

// What each trip adds to the value.
std::int64_t trip_of(const Value& value) {
  const auto* linear = std::get_if<Linear>(&value);
  return linear != nullptr ? linear->trip : 0;
}

}  // namespace

bool RowExecutor::within(std::uint32_t block, std::uint32_t loop) const {
  const std::vector<std::uint32_t>& loops = slice_.loops_of_block[block];
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

void RowExecutor::close_loop(std::uint32_t from, Path& path) {
  const std::vector<std::uint32_t>& loops = slice_.loops_of_block[path.block];
  if (loops.empty() || slice_.loop_headers[loops.back()] != path.block ||
      within(from, loops.back()))
    return;
  Closing closing;
  closing.loop = loops.back();
  if (failures_[closing.loop] > max_failures + successes_[closing.loop]) return;
  closing_ = &closing;
  bool linear = find_linear_values(path);
  if (std::vector<Value>& known = known_trips_[closing.loop]; !linear && !known.empty()) {
    known.clear();
    linear = find_linear_values(path);
  }
  closing_ = nullptr;
  if (!linear) {
    ++failures_[closing.loop];
    return;
  }
  ++successes_[closing.loop];
  commit(closing, path);
}

// The values at the header as functions of the trip; closing_ then holds one trip with them.
bool RowExecutor::find_linear_values(Path& path) {
  std::vector<Value> guess = path.values;
  std::vector<Value>& known = known_trips_[closing_->loop];
  for (std::size_t slot = 0; slot < known.size(); ++slot) {
    if (is<Varying>(known[slot]))
      guess[slot] = Varying{};
    else if (auto* linear = std::get_if<Linear>(&guess[slot]))
      linear->trip = trip_of(known[slot]);
  }
  bool first = known.empty();
  for (int round = 0; round < max_guesses; ++round) {
    const std::uint32_t loop = closing_->loop;
    *closing_ = Closing{};
    closing_->loop = loop;
    arithmetic_.conditions.clear();
    Path trip;
    trip.block = path.block;
    trip.row = path.row;
    trip.values = guess;
    trip.trips = path.trips;
    if (!symbolic_trip(trip)) return false;
    bool changed = false;
    for (std::size_t slot = 0; slot < guess.size(); ++slot) {
      if (is<Varying>(guess[slot])) continue;
      Value next = guess[slot];
      auto* const expected = std::get_if<Linear>(&next);
      if (expected != nullptr) expected->base += static_cast<std::uint64_t>(expected->trip);
      if (trip.values[slot] == next) continue;
      changed = true;
      const auto* const found = std::get_if<Linear>(&trip.values[slot]);
      if (first && found != nullptr && expected != nullptr && found->stride == expected->stride) {
        const std::uint64_t before = std::get<Linear>(path.values[slot]).base;
        std::get<Linear>(guess[slot]).trip = static_cast<std::int64_t>(found->base - before);
      } else {
        guess[slot] = Varying{};
      }
    }
    first = false;
    if (changed) continue;
    const std::uint64_t steps_left = max_steps - std::min<std::uint64_t>(path.step, max_steps);
    if (!closing_->has_exit || closing_->last_trip == 0 ||
        closing_->last_trip >= steps_left / (closing_->steps + 1))
      return false;
    for (const NoWrap& condition : arithmetic_.conditions)
      if (!holds_until(condition, closing_->last_trip)) return false;
    known = guess;
    return true;
  }
  return false;
}

bool RowExecutor::symbolic_trip(Path& path) {
  while (true) {
    const SliceBlock& block = slice_.blocks[path.block];
    for (const SliceOperation& operation : block.operations) {
      if (!may_go_on(path)) return false;
      perform(operation, path);
      if (closing_->failed) return false;
    }
    if (!may_go_on(path) || block.end == SliceBlock::End::exit) return false;
    const std::uint32_t from = path.block;
    const Trips* over = nullptr;
    if (block.end == SliceBlock::End::branch && block.predicate != no_slot)
      over = std::get_if<Trips>(&path.values[block.predicate]);
    if (over != nullptr) {
      if (!branch_over_trips(block, *over, path)) return false;
    } else if (block.end == SliceBlock::End::jump) {
      path.block = block.next;
    } else {
      branch(block, path);
    }
    if (closing_->failed) return false;
    if (path.block == slice_.loop_headers[closing_->loop]) return true;
    // Out of the loop, or into one within it.
    if (!within(path.block, closing_->loop) ||
        slice_.loops_of_block[path.block].back() != closing_->loop)
      return false;
    count_trips(from, path);
  }
}

// The one branch that leaves the loop; the path stays in it.
bool RowExecutor::branch_over_trips(const SliceBlock& block, const Trips& predicate, Path& path) {
  const bool taken_stays = within(block.taken, closing_->loop);
  if (closing_->has_exit || taken_stays == within(block.next, closing_->loop)) return false;
  const bool leaves_when = taken_stays == block.predicate_negated;
  const auto last = first_trip(predicate, leaves_when);
  if (!last) return false;
  closing_->has_exit = true;
  closing_->last_trip = *last;
  closing_->exit_block = path.block;
  closing_->exit_steps = closing_->steps;
  closing_->at_exit = path.values;
  closing_->behind = taken_stays ? block.next : block.taken;
  path.block = taken_stays ? block.taken : block.next;
  return true;
}

void RowExecutor::commit(Closing& closing, Path& path) {
  const auto last = static_cast<std::uint32_t>(closing.last_trip);
  for (const Closing::Touch& touch : closing.touches) {
    const std::uint32_t count = touch.before_exit ? last + 1 : last;
    Run run;
    run.access = static_cast<std::uint16_t>(touch.access);
    run.request = path.requests[touch.access];
    run.step = path.step + touch.step;
    run.loop = loop_index(runs_, {count, closing.steps, count > 1 ? trip_of(touch.address) : 0});
    add_runs(run, touch.address, touch.offset, path);
    path.requests[touch.access] += count;
  }
  path.step += last * closing.steps + closing.exit_steps;
  path.trips[closing.loop] = last;
  path.turns = hash_of(path.turns, closing.loop, last);
  path.values = std::move(closing.at_exit);
  for (Value& value : path.values) value = settled(value, last);
  path.block = closing.behind;
  count_trips(closing.exit_block, path);
}

}  // namespace demarc::locality
