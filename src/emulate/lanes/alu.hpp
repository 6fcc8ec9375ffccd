// The lane-wise micro-ops and their handlers for each instruction set of the CPU.
#pragma once

#include <array>
#include <cstdint>

#include "demarc/emulate/emulate.hpp"
#include "warp.hpp"

namespace demarc::emulate {

enum class Alu : std::uint16_t {
#define DEMARC_UNARY(name, D, A, value) name,
#define DEMARC_BINARY(name, D, A, B, value) name,
#define DEMARC_TERNARY(name, D, A, B, C, value) name,
#define DEMARC_COMPARE(name, A, value) name,
#define DEMARC_SELECT(name, D) name,
#include "lanes/alu_ops.def"
#undef DEMARC_UNARY
#undef DEMARC_BINARY
#undef DEMARC_TERNARY
#undef DEMARC_COMPARE
#undef DEMARC_SELECT
  count
};

// vector[bits]: bits as in MicroOp::uniform (a, b, c are uniform slots), destination a vector slot
// (a predicate for comparisons). uniform: sources and destination are uniform slots; null for
// comparisons and selections.
struct AluHandlers {
  std::array<Handler, 8> vector{};
  Handler uniform = nullptr;
};

struct Access;
enum class AccessMode : std::uint8_t { load, store, atomic };
// Addresses, checks and trace of one memory micro-op of AddressKind MicroOp::kind. False: no lane
// has work left.
using AccessFront = bool (*)(Warp&, const MicroOp*, Access&, AccessMode);

// Loads and stores of one element size and register size; see memory.inl.
enum class MemoryForm : std::uint8_t {
  u8_r16,
  u8_r32,
  u8_r64,
  s8_r16,
  s8_r32,
  s8_r64,
  u16_r16,
  u16_r32,
  u16_r64,
  s16_r32,
  s16_r64,
  u32_r32,
  u32_r64,
  s32_r64,
  u64_r64,
  u8_r8,
  count
};
enum class AddressKind : std::uint8_t {
  global,
  shared,
  local,
  constant,
  param,
  generic,
  frame,
  count
};

struct MemoryHandlers {
  Handler load[static_cast<std::size_t>(MemoryForm::count)] = {};
  Handler store[4] = {};  // by log2 of the element's bytes
};

struct MatrixSteps;

struct HandlerTables {
  const AluHandlers* alu = nullptr;  // by Alu
  const MemoryHandlers* memory = nullptr;
  const AccessFront* fronts = nullptr;  // by AddressKind, for everything else that touches memory
  Handler header = nullptr;
  const MatrixSteps* matrix = nullptr;
};

namespace baseline {
HandlerTables tables();
}
namespace avx2 {
HandlerTables tables();
}
namespace avx512 {
HandlerTables tables();
}

// The tables for `set`, which must not be wider than widest_instruction_set().
[[nodiscard]] HandlerTables handler_tables(InstructionSet set);

}  // namespace demarc::emulate
