// Adds up what leases count, and time at a limit.
#include "demarc/serve/tenant_totals.hpp"

namespace demarc::serve {
namespace {

constexpr std::uint64_t max_count = INT64_MAX;  // that a message says

void add(std::uint64_t& to, std::uint64_t more) {
  to = more > max_count - to ? max_count : to + more;
}

using PathCounts = std::array<std::atomic<std::uint64_t>, cuda::launch_paths>;

void add(std::vector<std::uint64_t>& to, const PathCounts& counts) {
  for (std::size_t path = 0; path < counts.size(); ++path) add(to[path], counts[path]);
}

}  // namespace

void LimitTime::note(bool at_limit, Clock::time_point now) {
  if (at_limit == since_.has_value()) return;
  ended_ = total(now);
  since_ = at_limit ? std::optional(now) : std::nullopt;
}

LimitTime::Clock::duration LimitTime::total(Clock::time_point now) const {
  return since_ ? ended_ + (now - *since_) : ended_;
}

void TenantTotals::add_ended(const cuda::ControlBlock& block) {
  add(launches, block.counters.seen_of_program());
  add_slo_misses(block.slo_misses);
}

void TenantTotals::add_slo_misses(std::uint64_t misses) {
  add(slo_misses, misses);
}

void add_living(lease::TenantStatus& status, const cuda::ControlBlock& block) {
  add(status.launches, block.counters.masked);
  add(status.unconfined, block.counters.unmasked);
  add(status.refused, block.counters.refused);
  add(status.launches_total, block.counters.seen_of_program());
  add(status.slo_misses, block.slo_misses);
  add(status.refused_bytes, block.record.refused_bytes());
  add(status.refused_calls, block.counters.colored.refused);
  add(status.refused_kernels, block.counters.colored.left_out);
}

}  // namespace demarc::serve
