// A card in equal parts without a configuration: `demarc exec --part 1/2` finds such a server, or
// starts one. It belongs to the user. All programs of the user on that card share it. It ends by
// itself once no program has used it for a while.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/lease/packet.hpp"
#include "demarc/partition/part.hpp"

namespace demarc::serve {

struct DivisionPlan {
  std::uint32_t card = 0;  // cuda:0
  partition::Part part{0, 2};
  std::string memory;                                 // as in a configuration; empty: what is free
  std::string description;                            // the same; empty: what is built in
  std::string program;                                // of `demarc`
  std::function<void(const std::string& line)> tell;  // a line for the user
  double ending_seconds = 20;                         // for the last server, which has 10 to end
  double starting_seconds = 120;                      // for another program that starts a server
};

// The server stays while this lives.
struct JoinedDivision {
  std::string socket;
  std::string tenant;
  lease::PacketSocket connection;
};

// Waits for a server that is being started, no matter by whom. invalid_input if such a server
// divides the card into another number of parts, or if the memory or the description is wrong; else
// the error of the server that did not start, of the kind that its exit code says.
// Call it while the process has only one thread.
[[nodiscard]] Result<JoinedDivision> join_division(const DivisionPlan& plan);

// The configuration of that server.
[[nodiscard]] std::string division_config(const DivisionPlan& plan);
// The socket on which it listens.
[[nodiscard]] std::string division_socket(std::uint32_t card, std::uint32_t parts);

}  // namespace demarc::serve
