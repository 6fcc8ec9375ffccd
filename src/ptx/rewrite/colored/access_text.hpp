// The text of one access with its address translated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct AccessText {
  const Mnemonic& mnemonic;
  std::string_view written;  // from its guard to its semicolon
  std::uint8_t bracket = 0;  // which bracketed operand is the address
  std::string address;       // the instruction that puts the linear address into %demarc_a
  // Of a cp.async that can have a policy: what puts its address of shared memory into %demarc_d.
  std::string destination = {};
  bool has_policies = false;  // the module can have cache policies
};

// Whether the brackets and the mnemonic are where they seem to be: no comment within the access, no
// blanks within the mnemonic.
[[nodiscard]] bool is_plainly_written(const AccessText& access);

// The rest takes what is plainly written. Whether a generic access can be written as one to shared
// memory: hints and the read-only cache are for global memory.
[[nodiscard]] bool can_name_shared(const Mnemonic& mnemonic);
// The access to shared memory, by the same generic address.
[[nodiscard]] std::string in_shared(const AccessText& access);

// The access itself, as a streaming one (eviction.hpp), at the translated address in %demarc_a;
// local memory becomes global memory.
[[nodiscard]] std::string translated(const AccessText& access);

// The same with its translation.
[[nodiscard]] std::string in_colored(const AccessText& access, const Translation& translation);
// The same where the address may lie in the window of another memory, told apart at run time.
// `windows`: bits of Origin, not 0.
[[nodiscard]] std::string in_one_of(const AccessText& access, const Translation& translation,
                                    std::uint8_t windows);

}  // namespace demarc::ptx
