// What a sweep costs besides its simulations: a point that does nothing, beside a process that does
// nothing; 100 000 points in one file, and the memory they take; how much faster two processes are.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/sweep/results.hpp"
#include "demarc/sweep/run.hpp"

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

// Of this process, without those that run points.
double own_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double run_seconds(const std::filesystem::path& folder, const sweep::Plan& plan, unsigned jobs) {
  const sweep::RunCommand command = carry_out;
  const auto path = folder / (std::to_string(plan.size()) + "-" + std::to_string(jobs) + ".db");
  std::filesystem::remove(path);
  auto crew = sweep::Crew::start(plan, jobs, command).value();
  auto store = sweep::Store::open(path, plan, false).value();
  const auto begin = Clock::now();
  if (sweep::run_sweep(plan, store, crew, nullptr, {}).value().failed != 0) std::abort();
  return seconds_since(begin);
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("sweep-bench-{}", ::getpid());
  std::filesystem::create_directory(folder);
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
  std::filesystem::remove_all(folder);
  return 0;
}
