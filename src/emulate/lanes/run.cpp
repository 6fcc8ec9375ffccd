// Comparison of two values, and the loop that calls a lane function for every executing lane.
#include <bit>

#include "lanes/functions.hpp"

namespace demarc::emulate {

namespace {

bool signed_for_compare(LaneType type) {
  return type == LaneType::s8 || type == LaneType::s16 || type == LaneType::s32 ||
         type == LaneType::s64;
}

std::int64_t extend_for_compare(std::uint64_t bits, LaneType type) {
  const unsigned width = lane_bytes(type) * 8;
  if (width == 64) return static_cast<std::int64_t>(bits);
  const std::uint64_t shifted = bits << (64 - width);
  return signed_for_compare(type) ? static_cast<std::int64_t>(shifted) >> (64 - width)
                                  : static_cast<std::int64_t>(shifted >> (64 - width));
}

}  // namespace

bool compare_lanes(std::uint64_t a, std::uint64_t b, LaneType type, Compare how, bool ftz) {
  const bool floating = type == LaneType::f16 || type == LaneType::bf16 || type == LaneType::f32 ||
                        type == LaneType::f64;
  if (floating) {
    if (ftz && type == LaneType::f32) {
      if ((a & 0x7f800000U) == 0) a &= 0x80000000U;
      if ((b & 0x7f800000U) == 0) b &= 0x80000000U;
    }
    if (ftz && type == LaneType::f16) {
      if ((a & 0x7c00U) == 0) a &= 0x8000U;
      if ((b & 0x7c00U) == 0) b &= 0x8000U;
    }
    const double x = lane_to_double(a, type);
    const double y = lane_to_double(b, type);
    const bool unordered = x != x || y != y;
    switch (how) {
      case Compare::eq:
        return !unordered && x == y;
      case Compare::ne:
        return !unordered && x != y;
      case Compare::lt:
        return x < y;
      case Compare::le:
        return x <= y;
      case Compare::gt:
        return x > y;
      case Compare::ge:
        return x >= y;
      case Compare::equ:
        return unordered || x == y;
      case Compare::neu:
        return unordered || x != y;
      case Compare::ltu:
        return unordered || x < y;
      case Compare::leu:
        return unordered || x <= y;
      case Compare::gtu:
        return unordered || x > y;
      case Compare::geu:
        return unordered || x >= y;
      case Compare::num:
        return !unordered;
      case Compare::nan:
        return unordered;
    }
    return false;
  }
  const std::int64_t x = extend_for_compare(a, type);
  const std::int64_t y = extend_for_compare(b, type);
  const bool less = signed_for_compare(type)
                        ? x < y
                        : static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(y);
  switch (how) {
    case Compare::eq:
      return x == y;
    case Compare::ne:
      return x != y;
    case Compare::lt:
    case Compare::ltu:
      return less;
    case Compare::le:
    case Compare::leu:
      return less || x == y;
    case Compare::gt:
    case Compare::gtu:
      return !less && x != y;
    default:
      return !less;
  }
}

namespace {

std::uint64_t read_lane(const Warp& warp, std::uint32_t slot, unsigned width, bool is_uniform,
                        unsigned lane) {
  const std::byte* at = warp.frame + slot;
  if (width == 0) return (*reinterpret_cast<const Mask*>(at) >> lane) & 1U;
  std::uint64_t value = 0;
  const std::byte* from = at + (is_uniform ? 0 : std::size_t{lane} * width);
  switch (width) {
    case 1:
      value = *reinterpret_cast<const std::uint8_t*>(from);
      break;
    case 2:
      value = *reinterpret_cast<const std::uint16_t*>(from);
      break;
    case 4:
      value = *reinterpret_cast<const std::uint32_t*>(from);
      break;
    default:
      value = *reinterpret_cast<const std::uint64_t*>(from);
      break;
  }
  return value;
}

void write_lane(const Warp& warp, std::uint32_t slot, unsigned width, unsigned lane,
                std::uint64_t value) {
  std::byte* at = warp.frame + slot;
  if (width == 0) {
    Mask& mask = *reinterpret_cast<Mask*>(at);
    mask = (mask & ~(Mask{1} << lane)) | (static_cast<Mask>(value & 1U) << lane);
    return;
  }
  std::byte* to = at + std::size_t{lane} * width;
  switch (width) {
    case 1:
      *reinterpret_cast<std::uint8_t*>(to) = static_cast<std::uint8_t>(value);
      break;
    case 2:
      *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(value);
      break;
    case 4:
      *reinterpret_cast<std::uint32_t*>(to) = static_cast<std::uint32_t>(value);
      break;
    default:
      *reinterpret_cast<std::uint64_t*>(to) = value;
      break;
  }
}

}  // namespace

const MicroOp* run_lanes(Warp& warp, const MicroOp* op) {
  const auto& details = *static_cast<const LaneDetails*>(op->aux);
  const bool one = (op->uniform & uniform_d) != 0;
  for (Mask rest = one ? warp.mask & (0U - warp.mask) : warp.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    LaneInput input;
    for (unsigned i = 0; i < details.sources; ++i) {
      input.in[i] =
          read_lane(warp, details.slot[i], details.width[i], details.uniform[i] != 0, lane);
      if (details.negated[i]) input.in[i] ^= 1U;
    }
    input.carry = (warp.carry >> lane) & 1U;
    const std::uint64_t value = details.function(input, details);
    if (details.has_result) write_lane(warp, op->d, details.result_width, one ? 0 : lane, value);
    if (details.has_second)
      write_lane(warp, details.second_slot, details.second_width, lane, input.second);
    if (details.uses_carry) warp.carry = (warp.carry & ~(Mask{1} << lane)) | (input.carry << lane);
  }
  return op + 1;
}

}  // namespace demarc::emulate
