// Reads immediates as the type of their operand.
#include "lower/immediate.hpp"

#include <bit>

#include "lanes/functions.hpp"

namespace demarc::emulate {

using ptx::Type;

namespace {

// An integer where a floating value is meant is its value, except for untyped bits.
std::uint64_t bits_of_integer(std::uint64_t value, Type type) {
  const auto number = static_cast<std::int64_t>(value);
  if (type == Type::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  if (type == Type::f64) return std::bit_cast<std::uint64_t>(static_cast<double>(number));
  return value;
}

}  // namespace

std::uint64_t immediate_bits(const ptx::Operand& operand, Type type) {
  const bool is_f32 = operand.immediate == ptx::ImmediateKind::f32;
  const bool is_f64 = operand.immediate == ptx::ImmediateKind::f64;
  if (!is_f32 && !is_f64) return bits_of_integer(operand.value, type);
  const double value =
      is_f64 ? std::bit_cast<double>(operand.value)
             : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.value)));
  switch (type) {
    case Type::f64:
      return is_f64 ? operand.value : std::bit_cast<std::uint64_t>(value);
    case Type::f32:
      return is_f32 ? operand.value : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case Type::f16:
      return lane_from_double(value, LaneType::f16, Rounding::rn);
    case Type::bf16:
      return lane_from_double(value, LaneType::bf16, Rounding::rn);
    default:
      return operand.value;
  }
}

}  // namespace demarc::emulate
