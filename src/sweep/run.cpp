// The master gives points to processes and ranks, one after the other, and writes what comes back.
#include "demarc/sweep/run.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>

#include "demarc/base/text.hpp"
#include "order.hpp"
#include "runner.hpp"

namespace demarc::sweep {
namespace {

using Clock = std::chrono::steady_clock;

// A point that is shorter than this waits behind another one, so that no rank waits for a message.
constexpr double short_point_s = 0.2;
constexpr std::size_t short_points_in_line = 4;
constexpr int max_losses = 3;  // a point that has ended so many processes has failed

unsigned cores() {
  cpu_set_t all{};
  if (::sched_getaffinity(0, sizeof all, &all) != 0) return 1;
  return std::max(static_cast<unsigned>(CPU_COUNT(&all)), 1U);
}

// Which of the runners have something, after at most so long.
std::vector<std::size_t> ready_runners(const std::vector<Runner>& runners, int milliseconds) {
  std::vector<pollfd> watched;
  watched.reserve(runners.size());
  for (const Runner& runner : runners) watched.push_back({runner.descriptor(), POLLIN, 0});
  std::vector<std::size_t> ready;
  if (::poll(watched.data(), watched.size(), milliseconds) <= 0) return ready;
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (watched[i].revents != 0) ready.push_back(i);
  }
  return ready;
}

}  // namespace

struct Crew::Members {
  const Plan& plan;
  const RunCommand& command;
  unsigned jobs;
  std::vector<Runner> runners;

  // Number `r` of them, on its part of the cores.
  [[nodiscard]] Result<Runner> start(unsigned r) const {
    const unsigned each = jobs > 1 ? std::max(cores() / jobs, 1U) : 0;
    return Runner::start(plan, command, r * each % cores(), each);
  }
};

Crew::Crew(std::unique_ptr<Members> members) : members_(std::move(members)) {}
Crew::Crew(Crew&&) noexcept = default;
Crew& Crew::operator=(Crew&&) noexcept = default;
Crew::~Crew() = default;

Result<Crew> Crew::start(const Plan& plan, unsigned jobs, const RunCommand& command) {
  auto members = std::make_unique<Members>(Members{plan, command, jobs == 0 ? cores() : jobs, {}});
  for (unsigned r = 0; r < members->jobs; ++r) {
    DEMARC_TRY(Runner runner, members->start(r));
    members->runners.push_back(std::move(runner));
  }
  return Crew(std::move(members));
}

namespace {

// With ranks no call tells when a message comes: one looks, the more often the less there is to
// do.
constexpr int look_often_ms = 1;
constexpr int look_ms = 4;

class Master {
 public:
  Master(const Plan& plan, Store& store, Crew& crew, Transport* ranks, const RunOptions& options)
      : plan_(plan),
        store_(store),
        crew_(crew.members()),
        runners_(crew_.runners),
        ranks_(ranks),
        options_(options) {}

  Result<State> run() {
    DEMARC_TRY(auto left, points_left());
    order_.emplace(plan_, std::move(left));
    places_.resize(runners_.size());
    for (std::size_t p = 0; p < places_.size(); ++p) look_at_.push_back(p);
    state_.points = plan_.size();
    begin_ = Clock::now();
    auto ended = work();
    for (std::uint32_t rank = 1; ranks_ != nullptr && rank < ranks_->size(); ++rank) {
      ranks_->send(rank, "");
    }
    if (!ended) return tl::unexpected(ended.error());
    told_ = {};
    tell();
    return state_;
  }

 private:
  // Where points run: a runner of ours, or a slot of another rank.
  struct Place {
    std::uint32_t rank = 0;
    std::uint32_t slot = 0;
    std::deque<Point> points;  // the first one runs
  };

  Result<std::vector<std::uint64_t>> points_left() {
    std::vector<std::uint64_t> left;
    for (std::uint64_t i = 0; i < plan_.size(); ++i) {
      DEMARC_TRY(const Point point, plan_.point(i));
      DEMARC_TRY(const auto state, store_.state(point));
      if (state && (*state || !options_.retry)) {
        ++state_.held;
        if (!*state) ++state_.failed;
        continue;
      }
      if (options_.most == 0 || left.size() < options_.most) left.push_back(i);
    }
    return left;
  }

  Result<void> work() {
    while (true) {
      DEMARC_CHECK(hand_out());
      if (order_->empty() && busy_ == 0) return {};
      for (const std::size_t r : ready_runners(runners_, patience_ms())) {
        DEMARC_CHECK(listen(r));
      }
      while (ranks_ != nullptr) {
        const auto message = ranks_->receive();
        if (!message) break;
        DEMARC_CHECK(take(*message));
      }
      tell();
    }
  }

  // How long messages need not be looked for.
  [[nodiscard]] int patience_ms() const {
    if (ranks_ == nullptr) return 500;
    return lined_up_ == places_.size() ? look_ms : look_often_ms;
  }

  Result<void> hand_out() {
    while (!order_->empty() && !look_at_.empty()) {
      const std::size_t p = look_at_.front();
      look_at_.pop_front();
      while (!order_->empty() && has_room(places_[p])) {
        DEMARC_TRY(Point point, plan_.point(order_->take()));
        const std::string task = to_text(Task{point.index, point.arguments, point.pointers});
        Place& place = places_[p];
        change(place, [&](auto& points) { points.push_back(std::move(point)); });
        if (place.rank != 0) {
          ranks_->send(place.rank, fmt::format("{} {}", place.slot, task));
        } else if (!runners_[p].send(task)) {
          DEMARC_CHECK(replace(p));
        }
      }
    }
    return {};
  }

  // Changes the points of a place.
  template <class Change>
  void change(Place& place, Change change_points) {
    const std::size_t before = place.points.size();
    change_points(place.points);
    const std::size_t after = place.points.size();
    busy_ = busy_ + std::size_t{after > 0} - std::size_t{before > 0};
    lined_up_ = lined_up_ + std::size_t{after > 1} - std::size_t{before > 1};
    if (after < before) look_at_.push_back(static_cast<std::size_t>(&place - places_.data()));
  }

  [[nodiscard]] bool has_room(const Place& place) const {
    if (place.points.empty()) return true;
    if (place.points.size() >= short_points_in_line) return false;
    // No rank is left without work for it.
    if (order_->count() < 2 * places_.size()) return false;
    const auto expected = order_->expected(place.points.back().index);
    return expected && *expected < short_point_s;
  }

  Result<void> listen(std::size_t r) {
    while (const auto text = runners_[r].receive()) {
      DEMARC_CHECK(take(places_[r], report_of(*text)));
    }
    if (!runners_[r].gone()) return {};
    return replace(r);
  }

  // A runner was killed: its points run once more.
  Result<void> replace(std::size_t r) {
    for (Point& point : places_[r].points) {
      if (&point == &places_[r].points.front() && ++losses_[point.index] >= max_losses) {
        Outcome outcome;
        outcome.error = "the process that runs points was killed";
        outcome.exit_code = 128 + 9;
        DEMARC_CHECK(keep(point, outcome));
        continue;
      }
      order_->give_back(point.index);
    }
    change(places_[r], [](auto& points) { points.clear(); });
    DEMARC_TRY(runners_[r], crew_.start(static_cast<unsigned>(r)));
    return {};
  }

  // "hello SLOTS" of a rank that is there, "SLOT REPORT" of a point that ended.
  Result<void> take(const RankMessage& message) {
    const std::size_t blank = message.text.find(' ');
    const std::string first = message.text.substr(0, blank);
    const std::string rest = message.text.substr(blank + 1);
    if (first == "hello") {
      first_place_[message.from] = places_.size();
      for (std::uint32_t slot = 0; slot < std::stoul(rest); ++slot) {
        look_at_.push_back(places_.size());
        places_.push_back({message.from, slot, {}});
      }
      return {};
    }
    return take(places_[first_place_.at(message.from) + std::stoul(first)], report_of(rest));
  }

  Result<void> take(Place& place, Report report) {
    const auto at = std::find_if(place.points.begin(), place.points.end(),
                                 [&](const Point& p) { return p.index == report.index; });
    const Point point = std::move(*at);
    change(place, [&](auto& points) { points.erase(at); });
    report.outcome.rank = place.rank;
    order_->learn(point.index, report.outcome.seconds);
    return keep(point, report.outcome);
  }

  Result<void> keep(const Point& point, const Outcome& outcome) {
    DEMARC_CHECK(store_.add(point, outcome));
    ++state_.ran;
    if (!outcome.done) ++state_.failed;
    state_.point_seconds += outcome.seconds;
    return {};
  }

  void tell() {
    const auto now = Clock::now();
    if (!options_.progress || now - told_ < std::chrono::milliseconds(100)) return;
    told_ = now;
    state_.seconds = std::chrono::duration<double>(now - begin_).count();
    options_.progress(state_);
  }

  const Plan& plan_;
  Store& store_;
  Crew::Members& crew_;
  std::vector<Runner>& runners_;
  Transport* ranks_;
  const RunOptions& options_;
  std::optional<Order> order_;
  // There may be very many places: nothing goes through all of them for each message.
  std::vector<Place> places_;                         // our runners first
  std::map<std::uint32_t, std::size_t> first_place_;  // place of each other rank
  std::deque<std::size_t> look_at_;                   // places that may have room
  std::size_t busy_ = 0, lined_up_ = 0;               // places with a point, with more than one
  std::map<std::uint64_t, int> losses_;
  State state_;
  Clock::time_point begin_, told_;
};

}  // namespace

Result<State> run_sweep(const Plan& plan, Store& store, Crew& crew, Transport* ranks,
                        const RunOptions& options) {
  return Master(plan, store, crew, ranks, options).run();
}

Result<void> serve_rank(Crew& crew, Transport& ranks) {
  std::vector<Runner>& runners = crew.members().runners;
  const auto lost = [&]() -> Result<void> {
    return missing_capability("rank {}: a process that runs points was killed", ranks.rank());
  };
  ranks.send(0, fmt::format("hello {}", runners.size()));
  std::size_t in_line = 0;
  while (true) {
    const int patience = in_line > runners.size() ? look_ms : look_often_ms;
    for (const std::size_t r : ready_runners(runners, patience)) {
      while (const auto text = runners[r].receive()) {
        --in_line;
        ranks.send(0, fmt::format("{} {}", r, *text));
      }
      if (runners[r].gone()) return lost();
    }
    while (const auto message = ranks.receive()) {
      if (message->text.empty()) return {};
      const std::size_t blank = message->text.find(' ');
      const auto slot = static_cast<std::size_t>(std::stoul(message->text.substr(0, blank)));
      if (!runners[slot].send(message->text.substr(blank + 1))) return lost();
      ++in_line;
    }
  }
}

}  // namespace demarc::sweep
