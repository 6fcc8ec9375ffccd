// Starts the canaries of tenants, reads what they print, and starts them again.
#include "canaries.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "demarc/base/numbers.hpp"
#include "demarc/base/text.hpp"

namespace demarc::serve {
namespace {

constexpr std::size_t max_rest = 4096;  // bytes of a line without an end

bool has_output(int file) {
  pollfd item{file, POLLIN, 0};
  return ::poll(&item, 1, 0) > 0;
}

}  // namespace

Result<CanaryProgram> CanaryProgram::start(const std::vector<std::string>& command) {
  ProcessOptions options;
  options.output = ChildStream::pipe;
  options.error = ChildStream::kept;
  options.death_signal = SIGTERM;
  DEMARC_TRY(Process child, Process::spawn(command, options));
  return CanaryProgram(std::move(child));
}

std::vector<double> CanaryProgram::take() {
  char bytes[1024];
  while (has_output(child_.output())) {
    const ssize_t count = ::read(child_.output(), bytes, sizeof bytes);
    if (count <= 0) break;
    rest_.append(bytes, static_cast<std::size_t>(count));
  }
  std::vector<double> numbers;
  for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
    if (const auto number = parse_double(rest_.substr(0, end), "line")) numbers.push_back(*number);
    rest_.erase(0, end + 1);
  }
  if (rest_.size() > max_rest) rest_.clear();
  return numbers;
}

std::optional<std::string> CanaryProgram::end() {
  const auto ended = child_.wait(0);
  if (!ended) return std::nullopt;
  // The reason stands in its last line.
  const std::string said = child_.kept();
  return fmt::format("{}: {}", ended->words(), last_line(said));
}

void Canaries::want(const std::vector<CanaryWish>& wishes) {
  std::map<std::string, Canary> next;
  for (const CanaryWish& wish : wishes) {
    auto now = canaries_.extract(wish.tenant);
    if (now && now.mapped().wish == wish) {
      next.insert(std::move(now));
    } else {
      next.emplace(wish.tenant, Canary{wish, CanaryGauge(wish.baseline_cycles)});
    }
  }
  canaries_ = std::move(next);
}

void Canaries::say(Canary& canary, const std::string& why, Clock::time_point now) {
  canary.program.reset();
  canary.start_at = now + plan_.restart_after;
  if (canary.said == why) return;
  canary.said = why;
  plan_.tell(
      fmt::format("the canary of tenant '{}' has ended, so its slowdown is not known until it runs "
                  "again: {}",
                  canary.wish.tenant, why));
}

void Canaries::look_at(Canary& canary, Clock::time_point now, bool quiet) {
  if (!canary.program && now < canary.start_at) return;
  if (!canary.program) {
    auto started = CanaryProgram::start(plan_.command(canary.wish.tenant));
    if (!started) return say(canary, started.error().message, now);
    canary.program.emplace(std::move(*started));
  }
  for (const double cycles : canary.program->take()) {
    canary.gauge.add(cycles, quiet, now);
    canary.said.clear();
  }
  if (const auto why = canary.program->end()) say(canary, *why, now);
}

void Canaries::look(Clock::time_point now, bool quiet, const Ledger& ledger) {
  const bool both = quiet && quiet_;
  quiet_ = quiet;
  for (auto& [name, canary] : canaries_) {
    const Book::Tenant* tenant = ledger.tenant(name);
    if (tenant == nullptr) continue;
    const std::pair place(tenant->terms.tpcs, tenant->terms.colors);
    if (canary.place && *canary.place != place) {
      canary.gauge = CanaryGauge(canary.wish.baseline_cycles);
    }
    canary.place = place;
    look_at(canary, now, both);
  }
}

void Canaries::ask_to_end() {
  for (auto& [name, canary] : canaries_) {
    if (canary.program) canary.program->ask_to_end();
  }
}

bool Canaries::ended() {
  for (auto& [name, canary] : canaries_) {
    if (canary.program && canary.program->end()) canary.program.reset();
  }
  return std::none_of(canaries_.begin(), canaries_.end(),
                      [](const auto& entry) { return entry.second.program.has_value(); });
}

bool Canaries::has(pid_t process) const {
  return std::any_of(canaries_.begin(), canaries_.end(), [&](const auto& entry) {
    return entry.second.program && entry.second.program->process() == process;
  });
}

CanaryReading Canaries::reading(const std::string& tenant, Clock::time_point now) const {
  const auto found = canaries_.find(tenant);
  return found == canaries_.end() ? CanaryReading() : found->second.gauge.reading(now);
}

}  // namespace demarc::serve
