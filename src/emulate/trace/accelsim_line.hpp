// One instruction line of Accel-Sim's trace text:
//   [line] PC mask ndest [dest…] OPCODE nsrc [src…] width [mode address…] [immediate]
// where the source line stands only under "-enable lineinfo = 1" and width 0 means no address; mode
// 0 lists one address per active lane, 1 gives base and stride, 2 gives a base and the distances
// between neighbouring active lanes. PC, mask and addresses are hexadecimal, the rest decimal.
#pragma once

#include <optional>
#include <string_view>

#include "demarc/emulate/trace.hpp"

namespace demarc::emulate {

// The words of a line, divided by blanks.
struct AccelsimWords {
  std::string_view rest;

  [[nodiscard]] std::string_view next();
  [[nodiscard]] bool number(std::uint64_t& value, int base);
  [[nodiscard]] bool signed_number(std::int64_t& value);
};

struct AccelsimInstruction {
  std::uint64_t pc = 0;
  std::uint32_t mask = 0;
  // Text: the opcode, what it writes, what it reads: "LDG.E.64 {R2, R3}, R4"; '_' where a load
  // writes no register. R255, which is always 0, is left out.
  TraceInstruction description;
  bool generic = false;  // the address says which space
  bool has_addresses = false;
  std::array<std::uint64_t, 32> addresses{};  // addresses of the lanes of mask
};

// Nothing: read. Else what the line lacks.
[[nodiscard]] std::optional<std::string_view> parse_accelsim_line(std::string_view line,
                                                                  bool has_line_number,
                                                                  AccelsimInstruction& out);

}  // namespace demarc::emulate
