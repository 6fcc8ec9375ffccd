// Sends modules through parser and printer, and compares what ptxas makes of both texts.
#include "round_trip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "compilers.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"

namespace demarc::ptx::test {
namespace {

std::string failure_of(const RoundTrip& trip) {
  const std::string original = trip.ptx();
  const ParseResult first = parse(original, trip.name);
  if (!first.diagnostics.list.empty()) {
    std::string all;
    for (std::size_t i = 0; i < first.diagnostics.list.size() && i < 10; ++i) {
      all += format(first.diagnostics.list[i], trip.name) + "\n";
    }
    return all;
  }
  const std::string printed = print(first.module);
  const ParseResult second = parse(printed, trip.name + " (printed)");
  if (!second.diagnostics.ok()) {
    return format(second.diagnostics.list.at(0), trip.name + " (printed)") + "\n";
  }
  if (print(second.module) != printed) {
    return trip.name + ": printing what was printed gives another text\n";
  }
  const std::string wanted = machine_code_digest(original, trip.ptxas_flags);
  const std::string got = machine_code_digest(printed, trip.ptxas_flags);
  if (wanted.empty()) return trip.name + ": ptxas made no machine code\n";
  if (wanted == got) return {};
  return fmt::format("{}: other machine code\n--- original\n{}--- printed\n{}", trip.name, wanted,
                     got);
}

}  // namespace

std::vector<RoundTrip> modules_in(const std::filesystem::path& folder) {
  std::vector<RoundTrip> trips;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ptx") continue;
    trips.push_back({entry.path().filename().string(),
                     [path = entry.path()] {
                       std::ostringstream text;
                       text << std::ifstream(path).rdbuf();
                       return text.str();
                     },
                     {}});
  }
  std::sort(trips.begin(), trips.end(),
            [](const RoundTrip& a, const RoundTrip& b) { return a.name < b.name; });
  return trips;
}

std::string failures_of(const std::vector<RoundTrip>& trips) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::string failures;
  const auto work = [&] {
    for (std::size_t i = next++; i < trips.size(); i = next++) {
      std::string failure;
      try {
        failure = failure_of(trips[i]);
      } catch (const std::exception& error) {
        failure = trips[i].name + ": " + error.what() + "\n";
      }
      const std::lock_guard lock(mutex);
      failures += failure;
    }
  };
  std::thread other(work);
  work();
  other.join();
  return failures;
}

}  // namespace demarc::ptx::test
