// Adds up what leases count, and time at a limit.
#include "demarc/serve/tenant_totals.hpp"

namespace demarc::serve {
namespace {

using PathCounts = std::array<std::atomic<std::uint64_t>, cuda::launch_paths>;

void add(std::vector<std::uint64_t>& to, const PathCounts& counts) {
  for (std::size_t path = 0; path < counts.size(); ++path) to[path] += counts[path];
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

void add_living(lease::TenantStatus& status, const cuda::ControlBlock& block) {
  add(status.launches, block.counters.masked);
  add(status.unconfined, block.counters.unmasked);
  add(status.refused, block.counters.refused);
  status.launches_total += block.counters.seen_of_program();
  status.slo_misses += block.slo_misses;
  status.refused_bytes += block.record.refused_bytes();
  status.refused_calls += block.counters.colored.refused;
  status.refused_kernels += block.counters.colored.left_out;
}

}  // namespace demarc::serve
