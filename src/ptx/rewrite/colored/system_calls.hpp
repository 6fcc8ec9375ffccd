// Calls of functions that the driver brings, and the strings that are handed to them.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/ptx/colored.hpp"

namespace demarc::ptx {

enum class SystemCall : std::uint8_t {
  none,       // the function is in the module, or its address is in a register
  assertion,  // __assertfail: reached once, by a kernel that ends there
  printing,   // vprintf
  heap,       // malloc, free
  other       // it is not known what it does with an address
};

[[nodiscard]] SystemCall system_call_of(const Module& module, const Body& body,
                                        const Instruction& call);

// Instructions that take the address of a string for nothing but an assertion's message: the string
// stays where the driver put it, which is where its message is read.
struct MessageUses {
  std::vector<std::uint32_t> instructions;  // instructions of the body, ascending
  std::vector<ColoredRefusal> refusals;     // messages of which that cannot be told
};

[[nodiscard]] MessageUses message_uses_of(const Module& module, const Function& function);

}  // namespace demarc::ptx
