// Which types and modifiers an opcode takes together (forms.def), and from which version and target
// on.
#pragma once

#include <cstdint>
#include <string>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// What a module is written for. A target of 0 is one that names no sm_ number; it allows
// everything.
struct FormLimits {
  std::uint32_t version = 0;  // times ten: 8.7 is 87
  std::uint32_t target = 0;
};

// Why ptxas refuses that mnemonic, in words; empty if it takes it or no row of the table is about
// it.
[[nodiscard]] std::string why_no_form(const Mnemonic& mnemonic, const FormLimits& limits);

}  // namespace demarc::ptx
