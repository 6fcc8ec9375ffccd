// Line accesses per second of the address-translation simulator, in full detail, on one core.
// Limit: what the event queue alone can do, one event per line access.
#include <fmt/format.h>

#include <chrono>

#include "demarc/sim/event_queue.hpp"
#include "demarc/sim/translation/simulate.hpp"

namespace {

namespace translation = demarc::sim::translation;
using demarc::sim::Cycles;
using demarc::sim::EventQueue;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double queue_events_per_second() {
  EventQueue<std::uint64_t> queue;
  for (std::uint64_t i = 0; i < 1000; ++i) queue.schedule(Cycles(i), i);
  constexpr std::uint64_t events = 20'000'000;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < events; ++i) {
    const std::uint64_t event = queue.pop();
    queue.schedule(queue.now() + Cycles(1 + event % 900), event);
  }
  return static_cast<double>(events) / seconds_since(start);
}

}  // namespace

int main() {
  translation::Settings settings;
  settings.megabytes = 16;
  double lines = 0;
  double seconds = 0;
  for (const auto& info : translation::application_table()) {
    const auto application = info.make(settings);
    for (const auto architecture :
         {translation::Architecture::centralised, translation::Architecture::distributed}) {
      const auto start = std::chrono::steady_clock::now();
      const auto summary = translation::simulate(settings, architecture, *application);
      if (!summary) return fmt::print("{}\n", summary.error().message), 1;
      const double elapsed = seconds_since(start);
      fmt::print("{:<4} {:<12} {:6.2f} million lines/s\n", info.name, to_string(architecture),
                 static_cast<double>(summary->lines) / elapsed / 1e6);
      lines += static_cast<double>(summary->lines);
      seconds += elapsed;
    }
  }
  fmt::print(
      "all  {:6.2f} million lines/s (target 2), {:.1f} s; limit: the event queue alone {:.1f} "
      "million events/s\n",
      lines / seconds / 1e6, seconds, queue_events_per_second() / 1e6);
}
