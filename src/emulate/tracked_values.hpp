// Operands of instructions, and their unwritten bits, lane by lane.
#pragma once

#include <cstring>
#include <span>

#include "machine.hpp"

namespace demarc::emulate {

// Bytes of its place in the frame.
[[nodiscard]] inline std::size_t place_bytes(const TrackedOperand& operand) {
  if (operand.width == 0) return sizeof(Mask);
  return operand.uniform ? 8 : std::size_t{operand.width} * warp_size;
}

[[nodiscard]] inline std::uint64_t low_bits(std::uint32_t bytes) {
  return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
}

// In a frame or its shadow. Those of 16 bytes are put together: any bit of one half counts.
[[nodiscard]] inline std::uint64_t bits_of(const std::byte* frame, const TrackedOperand& operand,
                                           unsigned lane) {
  if (operand.slot == TrackedOperand::unknown) return 0;
  if (operand.width == 0) {
    Mask mask = 0;
    std::memcpy(&mask, frame + operand.slot, sizeof mask);
    return (mask >> lane) & 1U;
  }
  const std::byte* at =
      frame + operand.slot + (operand.uniform ? 0 : std::size_t{lane} * operand.width);
  std::uint64_t value = 0;
  std::memcpy(&value, at, operand.width < 8 ? operand.width : 8);
  if (operand.width <= 8) return value;
  std::uint64_t high = 0;
  std::memcpy(&high, at + 8, 8);
  return value | high;
}

inline void set_high_bits(std::byte* frame, const TrackedOperand& operand, unsigned lane,
                          std::uint64_t bits) {
  std::memcpy(frame + operand.slot + std::size_t{lane} * operand.width + 8, &bits, 8);
}

inline void set_bits(std::byte* frame, const TrackedOperand& operand, unsigned lane,
                     std::uint64_t bits) {
  if (operand.slot == TrackedOperand::unknown) return;
  if (operand.width == 0) {
    Mask mask = 0;
    std::memcpy(&mask, frame + operand.slot, sizeof mask);
    mask = (mask & ~(Mask{1} << lane)) | (static_cast<Mask>(bits != 0 ? 1 : 0) << lane);
    std::memcpy(frame + operand.slot, &mask, sizeof mask);
    return;
  }
  std::memcpy(frame + operand.slot + (operand.uniform ? 0 : std::size_t{lane} * operand.width),
              &bits, operand.width < 8 ? operand.width : 8);
  if (operand.width > 8) set_high_bits(frame, operand, lane, bits);
}

// Those of so many bytes that are not written.
[[nodiscard]] inline std::uint64_t missing_bits(const std::uint8_t* shadow, std::uint32_t bytes) {
  std::uint64_t written = 0;
  std::memcpy(&written, shadow, bytes < 8 ? bytes : 8);
  return ~written & low_bits(bytes);
}

// The bits of a register that the sign of an element of so many bytes goes to.
[[nodiscard]] inline std::uint64_t extend_bits(std::uint64_t bits, std::uint32_t bytes) {
  if (bytes >= 8) return bits;
  const unsigned shift = 64 - 8 * bytes;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
}

// Which lane's operands count for a lane: another one's for a shuffle.
[[nodiscard]] unsigned source_lane(const Warp& w, const TrackedInstruction& in,
                                   std::span<const TrackedOperand> read, unsigned lane);

// The unwritten bits of a lane's result, where some operand has some.
[[nodiscard]] std::uint64_t result_bits(const Warp& w, const std::byte* shadow,
                                        const TrackedInstruction& in,
                                        std::span<const TrackedOperand> read, unsigned lane);

}  // namespace demarc::emulate
