// Reads immediates as the type of their operand.
#include "lower/immediate.hpp"

#include <bit>

namespace demarc::emulate {

using ptx::Type;

// Which constants a type takes, the parser has looked at. A literal 0f gives its bits to a double,
// as in `ptxas`.
std::uint64_t immediate_bits(const ptx::Operand& operand, Type type) {
  if (operand.immediate != ptx::ImmediateKind::f64 || type != Type::f32) return operand.value;
  return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(operand.value)));
}

}  // namespace demarc::emulate
