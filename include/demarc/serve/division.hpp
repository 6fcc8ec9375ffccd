// A card in equal parts without a configuration: the server that `demarc exec --share 1/2` finds,
// or starts. It belongs to the user, is shared by all of his programs on that card, and ends by
// itself once nobody has used it for a while.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/lease/packet.hpp"

namespace demarc::serve {

// The number-th (from 1 on) of so many equal parts.
struct CardPart {
  std::uint32_t number = 1;
  std::uint32_t of = 2;
  friend bool operator==(const CardPart&, const CardPart&) = default;
};
// "1/2". invalid_input says what was expected.
[[nodiscard]] Result<CardPart> parse_card_part(std::string_view text);

struct DivisionPlan {
  std::uint32_t card = 0;  // cuda:0
  CardPart part;
  std::string memory;                                 // as in a configuration; empty: what is free
  std::string description;                            // the same; empty: what is built in
  std::string program;                                // of `demarc`
  std::function<void(const std::string& line)> tell;  // a line for the user
};

// While it lives the server stays.
struct JoinedDivision {
  std::string socket;
  std::string tenant;
  lease::PacketSocket connection;
};

// Waits for a server that is being started, by whomever. invalid_input where the card is divided
// into another number of parts by such a server; else the error of the server that did not start.
// Call it from the only thread.
[[nodiscard]] Result<JoinedDivision> join_division(const DivisionPlan& plan);

// The configuration of that server.
[[nodiscard]] std::string division_config(const DivisionPlan& plan);
// Where it listens.
[[nodiscard]] std::string division_socket(std::uint32_t card, std::uint32_t parts);

}  // namespace demarc::serve
