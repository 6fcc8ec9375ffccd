// The text of a function's accesses whose addresses are in registers, alone or with neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rewrite/colored/access_text.hpp"
#include "rewrite/splice.hpp"

namespace demarc::ptx {

struct RegisterAccess {
  std::uint32_t instruction = 0;
  Operand address = {};
  AccessText text;         // but for its address
  bool is_shared = false;  // an earlier access has the same address
};

struct RegisterAccessesText {
  std::vector<Splice> splices;
  std::string prologue;      // prologue of the function
  std::uint64_t shared = 0;  // accesses that use the translation of an earlier one
};

// `accesses` come in the order of the text.
[[nodiscard]] RegisterAccessesText translate(const Module& module, const Body& body,
                                             const Translation& translation,
                                             std::span<const RegisterAccess> accesses);

}  // namespace demarc::ptx
