// What a sweep costs besides its simulations: a point that does nothing, beside a process that does
// nothing; 100 000 points in one file, and the memory they take; how much faster two processes are;
// what rank 0 spends on a point of other ranks, which answer at once without running it. Under
// mpirun those ranks are there and the rest is left out; without it they are made up.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/sweep/results.hpp"
#include "demarc/sweep/run.hpp"
#include "runner.hpp"

namespace {

using namespace demarc;  // NOLINT: a program of its own
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The points are so many; each works for so many microseconds.
sweep::Plan plan_of(int points, int microseconds) {
  return sweep::Plan::parse(
             fmt::format(R"({{"schema": "demarc.sweep/1", "command": ["topo", "{{n}}", "{}"],
                             "axes": {{"n": {{"from": 1, "to": {}, "step": 1}}}}, "keep": {{"m": "/m"}}}})",
                         microseconds, points),
             "bench", {})
      .value();
}

int carry_out(const std::vector<std::string>& arguments) {
  const auto begin = Clock::now();
  while (seconds_since(begin) < std::stod(arguments[2]) * 1e-6) {
  }
  std::printf("{\"m\": %s}", arguments[1].c_str());
  return 0;
}

double process_seconds(int count) {
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
  }
  return seconds_since(begin) / count;
}

long resident_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// For this process, without those that run points.
double own_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double run_seconds(const std::filesystem::path& folder, const sweep::Plan& plan, unsigned jobs,
                   sweep::Transport* ranks = nullptr) {
  const sweep::RunCommand command = carry_out;
  const auto path = folder / (std::to_string(plan.size()) + "-" + std::to_string(jobs) + ".db");
  std::filesystem::remove(path);
  auto crew = sweep::Crew::start(plan, jobs, command).value();
  auto store = sweep::Store::open(path, plan, false).value();
  const auto begin = Clock::now();
  if (sweep::run_sweep(plan, store, crew, ranks, {}).value().failed != 0) std::abort();
  return seconds_since(begin);
}

// What a rank answers that has run a point ("SLOT TASK").
std::string answer_to(const std::string& text) {
  const std::size_t blank = text.find(' ');
  sweep::Report report;
  report.index = sweep::task_of(text.substr(blank + 1)).index;
  report.outcome.done = true;
  report.outcome.seconds = 1;
  report.outcome.kept = {sweep::Value(1.0)};
  return text.substr(0, blank + 1) + sweep::to_text(report);
}

// Ranks of `slots` points each, in this process.
class MadeUpRanks final : public sweep::Transport {
 public:
  MadeUpRanks(std::uint32_t ranks, unsigned slots) : size_(ranks + 1) {
    for (std::uint32_t r = 1; r < size_; ++r) come_.push_back({r, fmt::format("hello {}", slots)});
  }
  std::uint32_t rank() const override { return 0; }
  std::uint32_t size() const override { return size_; }
  void send(std::uint32_t to, const std::string& text) override {
    if (text.empty()) return;
    const auto begin = own_seconds();
    come_.push_back({to, answer_to(text)});
    answering_ += own_seconds() - begin;
  }
  void abandon(int /*exit_code*/) override { std::abort(); }
  std::optional<sweep::RankMessage> receive() override {
    // Some come, then rank 0 looks elsewhere.
    constexpr int max_at_once = 20;
    if (come_.empty() || ++taken_ % (max_at_once + 1) == 0) return {};
    sweep::RankMessage message = std::move(come_.front());
    come_.pop_front();
    return message;
  }
  [[nodiscard]] double answering_seconds() const { return answering_; }

 private:
  std::uint32_t size_;
  std::uint64_t taken_ = 0;
  double answering_ = 0;
  std::deque<sweep::RankMessage> come_;
};

// Milliseconds of rank 0 per point of ranks that are made up.
double made_up_ms(const std::filesystem::path& folder, std::uint32_t ranks, unsigned slots) {
  constexpr int points = 200000;
  const sweep::Plan plan = plan_of(points, 0);
  MadeUpRanks made_up(ranks, slots);
  const double own = own_seconds();
  run_seconds(folder, plan, 1, &made_up);
  return 1e3 * (own_seconds() - own - made_up.answering_seconds()) / points;
}

// This process is a rank of a job. Rank 0 says what a point of the others costs it.
void measure_rank(const std::filesystem::path& folder) {
  constexpr int points = 20000;
  const sweep::Plan plan = plan_of(points, 0);
  const auto ranks = sweep::open_mpi().value();
  if (ranks->rank() == 0) {
    const double own = own_seconds();
    const double seconds = run_seconds(folder, plan, 1, ranks.get());
    std::printf("rank 0 of %u: %.3f ms of its own and %.3f ms of time per point\n", ranks->size(),
                1e3 * (own_seconds() - own) / points, 1e3 * seconds / points);
    return;
  }
  ranks->send(0, "hello 1");
  while (true) {
    const auto message = ranks->receive();
    if (message && message->text.empty()) return;
    if (message) ranks->send(0, answer_to(message->text));
    if (!message) ::usleep(100);
  }
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("sweep-bench-{}", ::getpid());
  std::filesystem::create_directory(folder);
  if (sweep::started_by_mpi()) {
    measure_rank(folder);
    std::filesystem::remove_all(folder);
    return 0;
  }
  const double process = process_seconds(5000);
  const double small = run_seconds(folder, plan_of(1000, 0), 1) / 1000;
  const long before = resident_kib();
  const double own = own_seconds();
  const double many = run_seconds(folder, plan_of(100000, 0), 1) / 100000;
  std::printf(
      "a point besides its simulation: %.3f ms of 1000 points, %.3f ms of 100000 (aim: 1 ms)\n",
      1e3 * small, 1e3 * many);
  std::printf("  of that the one that hands points out and writes: %.3f ms\n",
              1e3 * (own_seconds() - own) / 100000);
  std::printf(
      "  a process that does nothing: %.3f ms, the least that a point of its own can take\n",
      1e3 * process);
  std::printf("  memory that 100000 points take beyond 1000: %ld bytes a point\n",
              (resident_kib() - before) * 1024 / 99000);
  const double one = run_seconds(folder, plan_of(400, 10000), 1);
  const double two = run_seconds(folder, plan_of(400, 10000), 2);
  std::printf(
      "400 points of 10 ms: %.2f s one at a time, %.2f s two at a time: %.2f times as fast "
      "(aim 1.9; %ld cores, at most 2.00)\n",
      one, two, one / two, ::sysconf(_SC_NPROCESSORS_ONLN));
  const double near = made_up_ms(folder, 1, 64);
  std::printf("rank 0 per point of other ranks: %.3f ms of 1 rank of 64 slots, %.3f ms of 1000\n",
              near, made_up_ms(folder, 1000, 64));
  std::filesystem::remove_all(folder);
  return 0;
}
