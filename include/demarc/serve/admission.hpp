// Who gets one of the server's connections, of which there is a limited number.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::serve {

struct SeatLimits {
  std::size_t all = 4096;
  std::size_t of_a_party = 1024;  // but not of the server's own user
  std::size_t reserve = 64;       // that the server's own user alone may have

  // With at most so many files open; a connection needs three. missing_capability if they are too
  // few for a server.
  [[nodiscard]] static Result<SeatLimits> for_files(std::size_t files);
  // The largest number of connections with a lease or a process, each of which may keep a second
  // connection: the reserve stays free.
  [[nodiscard]] std::size_t holders() const { return (all - reserve) / 2; }
};

struct Seat {
  std::string party;                           // a user, or a tenant at the tenant's own socket
  bool needed = true;                          // else it gives way
  std::chrono::steady_clock::time_point used;  // when it asked last
};

// Before one more of `party` is seated: the index of the seat that gives way to it, or none if
// there is room. missing_capability if nothing may give way. `own`: it is the server's own user.
[[nodiscard]] Result<std::optional<std::size_t>> make_room(const std::vector<Seat>& seats,
                                                           const std::string& party, bool own,
                                                           const SeatLimits& limits);

}  // namespace demarc::serve
