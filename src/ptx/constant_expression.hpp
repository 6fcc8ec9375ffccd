// Integer constant expressions (PTX ISA manual, section 4.5.5): C operators on 64-bit integers that
// are .s64 or .u64; casts (.s64), (.u64); and the literals of section 4.5.
#pragma once

#include <cstdint>
#include <string>

#include "cursor.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct Constant {
  ImmediateKind kind = ImmediateKind::s64;
  std::uint64_t bits = 0;
};

// What went wrong, empty when nothing did. The cursor then stands behind the expression, else at
// the offending place.
using ConstantError = const char*;

// One literal: 12, 017, 0x1F, 0b101, 12U, 0f3F800000, 0d..., 1.5, 1e-3.
[[nodiscard]] ConstantError read_literal(Cursor& cursor, Constant& value);

// A whole expression; floating-point literals stand alone (with a sign).
[[nodiscard]] ConstantError read_constant(Cursor& cursor, Constant& value);

// The same, but stops before a comma, and gives only what binds tighter than + and -: the offset
// after a symbol is a chain of those.
[[nodiscard]] ConstantError read_constant_term(Cursor& cursor, Constant& value);

}  // namespace demarc::ptx
