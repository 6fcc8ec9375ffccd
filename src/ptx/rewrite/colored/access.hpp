// How an instruction reaches memory, as far as coloured addressing is concerned.
#pragma once

#include <cstdint>
#include <string_view>

#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

enum class MemoryReach : std::uint8_t {
  none,     // registers, shared or constant memory, parameters
  global,   // names the global space
  generic,  // names no space
  local,    // names the local space
  tile,     // a tile of a matrix by a generic address: rows that one translation cannot reach
  refused   // reaches memory that cannot be coloured; `why` tells
};

struct Access {
  MemoryReach reach = MemoryReach::none;
  std::uint8_t bracket = 0;   // which bracketed operand is the address: 0 the first
  std::uint32_t bytes = 0;    // it touches, from the address on, where that matters
  std::string_view why = {};  // of refused: continues "'ld.x …' "
};

// Instructions that are not known, and known ones with an address for which there is no rule, are
// refused.
[[nodiscard]] Access access_of(const Module& module, const Body& body,
                               const Instruction& instruction);

// The bracketed operand that `access` names, else nullptr.
[[nodiscard]] const Operand* address_of(const Body& body, const Instruction& instruction,
                                        const Access& access);

// Whether the accesses of an opcode are among those that go to the coloured memory.
[[nodiscard]] bool is_concerned(Opcode opcode, ColoredAccesses accesses);

}  // namespace demarc::ptx
