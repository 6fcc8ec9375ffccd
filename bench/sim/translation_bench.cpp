// Line accesses per second of the address-translation simulator, in full detail, on one core: the
// nine applications in both architectures at 64 MB, the size that the targets are for (two minutes,
// 1 GB). Limit: what the event queue alone can do, one event per line access.
// usage: demarc_translation_bench [--set NAME=VALUE]...
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <ctime>
#include <string_view>

#include "demarc/sim/event_queue.hpp"
#include "demarc/sim/translation/simulate.hpp"

namespace {

namespace translation = demarc::sim::translation;
using demarc::sim::Cycles;
using demarc::sim::EventQueue;

// For this program alone: who else uses the machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double queue_events_per_second() {
  EventQueue<std::uint64_t> queue;
  for (std::uint64_t i = 0; i < 1000; ++i) queue.schedule(Cycles(i), i);
  constexpr std::uint64_t events = 20'000'000;
  const double start = cpu_seconds();
  for (std::uint64_t i = 0; i < events; ++i) {
    const std::uint64_t event = queue.pop();
    queue.schedule(queue.now() + Cycles(1 + event % 900), event);
  }
  return static_cast<double>(events) / (cpu_seconds() - start);
}

}  // namespace

int main(int count, char** words) {
  translation::Settings settings;
  for (int i = 1; i < count; i += 2) {
    if (std::string_view(words[i]) != "--set" || i + 1 == count)
      return fmt::print("{}: --set NAME=VALUE was expected\n", words[i]), 1;
    if (const auto set = translation::apply_setting(settings, words[i + 1]); !set)
      return fmt::print("{}\n", set.error().message), 1;
  }
  double lines = 0;
  double seconds = 0;
  for (const auto& info : translation::application_table()) {
    const auto application = info.make(settings);
    for (const auto architecture :
         {translation::Architecture::centralised, translation::Architecture::distributed}) {
      const double start = cpu_seconds();
      const auto summary = translation::simulate(settings, architecture, *application);
      if (!summary) return fmt::print("{}\n", summary.error().message), 1;
      const double elapsed = cpu_seconds() - start;
      fmt::print("{:<4} {:<12} {:6.2f} million lines/s\n", info.name, to_string(architecture),
                 static_cast<double>(summary->lines) / elapsed / 1e6);
      lines += static_cast<double>(summary->lines);
      seconds += elapsed;
    }
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "all  {:6.2f} million lines/s (target 2), {:.1f} CPU seconds (target 120), peak {} MB "
      "(target 1000); "
      "limit: the event queue alone {:.1f} million events/s\n",
      lines / seconds / 1e6, seconds, usage.ru_maxrss / 1024, queue_events_per_second() / 1e6);
  const bool reached = lines >= 2e6 * seconds && seconds <= 120 && usage.ru_maxrss <= 1000 * 1024;
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}
