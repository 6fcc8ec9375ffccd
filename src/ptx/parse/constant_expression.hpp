// Constant expressions (PTX ISA manual, section 4.5), evaluated as `ptxas` does: C operators on
// 64-bit integers that are .s64 or .u64, + - * / and comparisons of doubles, casts (.s64) and
// (.u64), WARP_SZ.
#pragma once

#include <cstdint>
#include <string_view>

#include "demarc/ptx/ir.hpp"
#include "parse/cursor.hpp"

namespace demarc::ptx {

struct Constant {
  ImmediateKind kind = ImmediateKind::s64;
  std::uint64_t bits = 0;
};

[[nodiscard]] inline bool is_float(const Constant& value) {
  return value.kind == ImmediateKind::f32 || value.kind == ImmediateKind::f64;
}

inline constexpr std::string_view warp_size_name = "WARP_SZ";
inline constexpr std::uint64_t warp_size = 32;

// Whether the name at the cursor is WARP_SZ.
[[nodiscard]] inline bool is_warp_size(const Cursor& cursor) {
  const std::string_view rest(cursor.at, static_cast<std::size_t>(cursor.end - cursor.at));
  return rest.starts_with(warp_size_name) &&
         !Cursor::is(cursor.at[warp_size_name.size()], char_name);
}

// What went wrong, empty when nothing did. The cursor then stands behind the expression, else at
// the offending place.
using ConstantError = const char*;

// One literal: 12, 017, 0x1F, 0b101, 12U, 0f3F800000, 0d..., 1.5, 1e-3.
[[nodiscard]] ConstantError read_literal(Cursor& cursor, Constant& value);

// A literal or WARP_SZ: what sizes, alignments and counts are written with.
[[nodiscard]] ConstantError read_number(Cursor& cursor, Constant& value);

// A whole expression; it ends before a comma, and a literal 0f stands alone.
[[nodiscard]] ConstantError read_constant(Cursor& cursor, Constant& value);

}  // namespace demarc::ptx
