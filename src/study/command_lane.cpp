// Runs a command line: as an aggressor, which is kept running while its launches are watched, or as
// a victim, whose runs are timed.
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "command_run.hpp"
#include "work_watch.hpp"
#include "workload_spec.hpp"

namespace demarc::study {
namespace {

constexpr std::uint32_t max_restarts = 3;  // within a visit
constexpr auto tick = std::chrono::milliseconds(2);
// The ends of a timed run are known as exactly as this.
constexpr auto timed_tick = std::chrono::microseconds(200);

class CommandLane : public Lane {
 public:
  explicit CommandLane(CommandLaneOptions options) : options_(std::move(options)) {}
  ~CommandLane() override { stop_keeper(); }

  Result<void> load(const Workload& workload) override {
    const auto spec = parse_workload_spec(workload.spec);
    const auto* command = spec ? std::get_if<CommandSpec>(&*spec) : nullptr;
    if (command == nullptr || command->line.empty()) {
      return invalid_input("'{}' is not a command; write cmd:COMMAND LINE", workload.spec);
    }
    command_ = command->line;
    return {};
  }
  Result<std::vector<double>> sample(std::uint32_t count, double longest_seconds) override {
    const auto until = deadline(Clock::now(), longest_seconds);
    std::vector<double> times;
    while (times.size() < count && (times.empty() || Clock::now() < until)) {
      DEMARC_TRY(const double ns, timed_run());
      times.push_back(ns);
    }
    return times;
  }
  // A command's results are not read: the exit code of each run tells whether they are right.
  Result<Outputs> outputs() override { return Outputs{0, false, ""}; }

  Result<void> start() override {
    stopping_ = false;
    seen_ = {};
    fault_.clear();
    const auto begun = Clock::now();
    keeper_ = std::thread([this] { keep(); });
    std::unique_lock lock(mutex_);
    const auto settled = [this] { return seen_.launches > 0; };
    if (!wait_for(lock, begun, options_.patience_seconds, settled)) {
      return give_up(lock, !fault_.empty()
                               ? fault_
                               : fmt::format("was not seen working on the card: it launched no "
                                             "kernel within {} s",
                                             options_.patience_seconds));
    }
    changed_.wait_until(lock, deadline(begun, options_.settle_seconds),
                        [this] { return !fault_.empty(); });
    return fault_.empty() ? Result<void>{} : give_up(lock, fault_);
  }

  Result<void> visit_begins() override {
    const std::lock_guard lock(mutex_);
    watch_.begin(seen_);
    return {};
  }

  Result<void> visit_ended() override {
    std::unique_lock lock(mutex_);
    watch_.end(seen_);
    const auto decided = [this] { return watch_.verdict(seen_) != WorkWatch::Verdict::waiting; };
    (void)wait_for(lock, Clock::now(), options_.patience_seconds, decided);
    if (!fault_.empty()) return error(fault_);
    if (watch_.restarts() > max_restarts) {
      return error(fmt::format("ended {} times within one visit; it must run until it is stopped",
                               watch_.restarts()));
    }
    if (watch_.verdict(seen_) == WorkWatch::Verdict::working) return {};
    return error("was not seen working on the card during the visit: it launched no kernel");
  }

  Result<double> stop() override {
    stop_keeper();
    if (!fault_.empty()) return error(fault_);
    return 0.0;
  }

  std::string remark() const override {
    if (seen_.restarts == 0) return {};
    return fmt::format("the command ended by itself and was restarted {} time{}", seen_.restarts,
                       seen_.restarts == 1 ? "" : "s");
  }

 private:
  using Clock = std::chrono::steady_clock;

  static Clock::time_point deadline(Clock::time_point begun, double seconds) {
    return begun +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  [[nodiscard]] tl::unexpected<Error> error(const std::string& what) const {
    return check_failed("the command '{}' {}", command_, what);
  }
  tl::unexpected<Error> give_up(std::unique_lock<std::mutex>& lock, const std::string& what) {
    auto why = error(what);
    lock.unlock();
    stop_keeper();
    return why;
  }

  // False when time is up, or when something went wrong.
  template <class Condition>
  bool wait_for(std::unique_lock<std::mutex>& lock, Clock::time_point begun, double seconds,
                Condition condition) {
    const auto done = [&] { return !fault_.empty() || condition(); };
    return changed_.wait_until(lock, deadline(begun, seconds), done) && fault_.empty();
  }

  // The keeper: starts the command again whenever it ends well.
  void keep() {
    std::uint64_t earlier = 0;  // launches of runs that have ended
    while (true) {
      auto run = CommandRun::start(options_, command_);
      if (!run) return fail(fmt::format("does not start: {}", run.error().message));
      const auto ended = follow(*run, earlier);
      if (!ended) return;
      if (ended->exit_code != 0) return fail(run->words(*ended));
      earlier = note(*run, earlier, true);
      if (earlier == 0 && seen_.restarts > max_restarts) {
        return fail(
            fmt::format("was not seen working on the card: it ended {} times and launched "
                        "no kernel; the last of its output: {}",
                        seen_.restarts, run->output()));
      }
    }
  }

  // How the run ended, if it has, after a look at its launches. An error if they cannot be counted.
  static Result<std::optional<ProcessEnd>> look_at(CommandRun& run) {
    auto ended = run.ended();  // before the look, which then sees all of it
    if (const auto looked = run.look(); !looked) {
      // A run that ends meanwhile cannot be looked at: how it ended says more.
      if (!ended) ended = run.ended_soon();
      if (!ended) return tl::unexpected(looked.error());
    }
    return ended;
  }

  // Nanoseconds of one run, from its first kernel launch to its end.
  Result<double> timed_run() {
    auto run = CommandRun::start(options_, command_);
    if (!run) return error(fmt::format("does not start: {}", run.error().message));
    const auto begun = Clock::now();
    const auto late = deadline(begun, options_.longest_run_seconds);
    auto idle = begun;  // it had launched nothing yet
    while (true) {
      const auto now = Clock::now();
      const auto ended = look_at(*run);
      if (!ended) return error(ended.error().message);
      if (run->launches() == 0) idle = now;
      if (*ended) {
        if ((*ended)->exit_code != 0) return error(run->words(**ended));
        if (run->launches() == 0) {
          return error(
              fmt::format("launched no kernel; the last of its output: {}", run->output()));
        }
        return std::chrono::duration<double, std::nano>(Clock::now() - idle).count();
      }
      if (now >= late) {
        run->end();
        return error(fmt::format("did not end within {} s, and a victim has to end by itself",
                                 options_.longest_run_seconds));
      }
      std::this_thread::sleep_for(timed_tick);
    }
  }

  // How one run ended by itself; nothing once the lane is stopped or the run is at fault.
  std::optional<ProcessEnd> follow(CommandRun& run, std::uint64_t earlier) {
    while (true) {
      const auto ended = look_at(run);
      if (!ended) {
        fail(ended.error().message);
        return std::nullopt;
      }
      note(run, earlier, false);
      if (*ended) return *ended;
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, tick, [this] { return stopping_; })) continue;
      lock.unlock();
      const ProcessEnd last = run.end();
      const bool unproved = options_.proves && last.signal == SIGKILL;
      if (last.exit_code == outside || unproved) fail(run.words(last));
      return std::nullopt;
    }
  }

  std::uint64_t note(const CommandRun& run, std::uint64_t earlier, bool ended) {
    const std::lock_guard lock(mutex_);
    seen_.launches_of_run = ended ? 0 : run.launches();
    seen_.launches = earlier + run.launches();
    if (ended) ++seen_.restarts;
    changed_.notify_all();
    return seen_.launches;
  }

  void fail(const std::string& what) {
    const std::lock_guard lock(mutex_);
    fault_ = what;
    changed_.notify_all();
  }

  void stop_keeper() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (keeper_.joinable()) keeper_.join();
  }

  // Exit code of a prefix whose program was not confined.
  static constexpr int outside = static_cast<int>(ErrorKind::check_failed);

  CommandLaneOptions options_;
  std::string command_;
  std::thread keeper_;
  WorkWatch watch_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  WorkSeen seen_;
  std::string fault_;  // not empty: what is wrong with the command
};

}  // namespace

std::unique_ptr<Lane> make_command_lane(CommandLaneOptions options) {
  return std::make_unique<CommandLane>(std::move(options));
}

}  // namespace demarc::study
