// What memory the generic addresses in a function's registers may point to. Nothing is guessed: a
// value whose history is not known may point anywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Bits; 0 is a number that is not an address.
enum Origin : std::uint8_t {
  from_colored = 1,   // arguments of kernels, global and local variables
  from_shared = 2,    // cvta.shared
  from_constant = 4,  // cvta.const
  from_param = 8,     // cvta.param
  from_cluster = 16,  // mapa
  from_anywhere = 32  // loaded from memory, handed to a function, computed in another way
};

// By register, over the whole function whatever the order of its instructions.
[[nodiscard]] std::vector<std::uint8_t> origins_of(const Module& module, const Function& function);

// The origins other than coloured memory that instructions of the function make generic.
[[nodiscard]] std::uint8_t windows_made(const Module& module, const Function& function);

}  // namespace demarc::ptx
