// Values in the frame of a function. A vector value has a place for each of the 32 lanes, a uniform
// one is a single place of 8 bytes that all lanes read, and a predicate is a mask with a bit for
// each lane.
#pragma once

#include <cstdint>

#include "demarc/ptx/vocabulary.hpp"
#include "warp.hpp"

namespace demarc::emulate {

// Bytes from the start of the frame.
struct Slot {
  std::uint32_t offset = 0;
};

// Parameters and results of functions are padded to this, so that callers need not know their type.
inline constexpr std::uint32_t call_pitch = 16;  // bytes of a lane

// Register::width of a register of that type.
[[nodiscard]] inline std::uint8_t width_of(ptx::Type type) {
  return type == ptx::Type::pred ? std::uint8_t{0}
                                 : static_cast<std::uint8_t>(ptx::byte_size(type));
}

// What an instruction writes.
struct Register {
  Slot slot;
  std::uint8_t width = 0;  // bytes of one lane; 0: a predicate
  bool uniform = false;
};

// What an instruction reads.
struct Source {
  Slot slot;
  std::uint8_t width = 0;  // as of a register
  bool uniform = false;
  bool negated = false;  // of a predicate
};

[[nodiscard]] inline Source value_of(const Register& reg) {
  return {.slot = reg.slot, .width = reg.width, .uniform = reg.uniform};
}

// MicroOp::uniform of a micro-op that reads `a` and `b`.
[[nodiscard]] inline std::uint8_t uniform_bits(const Source& a, const Source& b = {}) {
  return static_cast<std::uint8_t>((a.uniform ? uniform_a : 0) | (b.uniform ? uniform_b : 0));
}

}  // namespace demarc::emulate
