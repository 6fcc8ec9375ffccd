// What is counted for a tenant: for its living leases, and since the start of the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "demarc/guest/control.hpp"
#include "demarc/lease/messages.hpp"

namespace demarc::serve {

// How long something was at its limit, in all. The caller says what time it is.
class LimitTime {
 public:
  using Clock = std::chrono::steady_clock;
  void note(bool at_limit, Clock::time_point now);
  [[nodiscard]] Clock::duration total(Clock::time_point now) const;

 private:
  Clock::duration ended_{};
  std::optional<Clock::time_point> since_;
};

// Totals since the start of the server. They never fall, because leases that have ended stay in
// them.
struct TenantTotals {
  std::chrono::steady_clock::duration attached{};  // time of processes that have ended
  std::uint64_t launches = 0;                      // counted by leases that have ended
  std::uint64_t slo_misses = 0;                    // counted by these, and reported by the socket
  LimitTime at_limit;  // nothing more of the tenant's memory could be given

  // A lease has ended whose processes counted here.
  void add_ended(const cuda::ControlBlock& block);
  void add_slo_misses(std::uint64_t misses);
};

// Adds what the processes of a living lease have counted until now. Programs can write anything
// there, so no sum gets larger than a message can say.
void add_living(lease::TenantStatus& status, const cuda::ControlBlock& block);

}  // namespace demarc::serve
