// Integer and bit instructions of one lane that have no vector loop.
#include <algorithm>
#include <bit>

#include "lanes/functions.hpp"
#include "machine.hpp"

namespace demarc::emulate {

namespace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

bool signed_lane(LaneType type) {
  return type == LaneType::s8 || type == LaneType::s16 || type == LaneType::s32 ||
         type == LaneType::s64;
}

std::int64_t extend_lane(std::uint64_t bits, LaneType type) {
  const unsigned width = lane_bytes(type) * 8;
  if (width == 64) return static_cast<std::int64_t>(bits);
  if (!signed_lane(type))
    return static_cast<std::int64_t>(bits & ((std::uint64_t{1} << width) - 1));
  return static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
}

std::uint64_t cut_lane(std::uint64_t bits, unsigned bytes) {
  return bytes >= 8 ? bits : bits & ((std::uint64_t{1} << (bytes * 8)) - 1);
}

std::uint64_t saturate_s32(std::int64_t value) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, -2147483648LL, 2147483647LL));
}

// a + b + carry; carry out of the type's width goes to lane.carry where `sets_carry`.
std::uint64_t add_with_carry(LaneInput& lane, std::uint64_t a, std::uint64_t b, std::uint64_t carry,
                             unsigned bytes, bool sets_carry) {
  const UnsignedWide sum = UnsignedWide{cut_lane(a, bytes)} + cut_lane(b, bytes) + carry;
  if (sets_carry) lane.carry = static_cast<std::uint32_t>(sum >> (bytes * 8)) & 1U;
  return cut_lane(static_cast<std::uint64_t>(sum), bytes);
}

bool joined(Logic logic, bool value, bool with) {
  switch (logic) {
    case Logic::none:
      break;
    case Logic::conjunction:
      return value && with;
    case Logic::disjunction:
      return value || with;
    case Logic::exclusive:
      return value != with;
  }
  return value;
}

}  // namespace

namespace lane {

#define DEMARC_LANE_FUNCTION(name) \
  std::uint64_t name([[maybe_unused]] LaneInput& lane, [[maybe_unused]] const LaneDetails& details)

DEMARC_LANE_FUNCTION(add_integer) {
  if (details.type == LaneType::u16x2 || details.type == LaneType::s16x2) {
    return (((lane.in[0] & 0xffff) + (lane.in[1] & 0xffff)) & 0xffff) |
           (((lane.in[0] >> 16) + (lane.in[1] >> 16)) << 16 & 0xffff0000U);
  }
  if (details.saturate) {
    return saturate_s32(extend_lane(lane.in[0], LaneType::s32) +
                        extend_lane(lane.in[1], LaneType::s32));
  }
  const auto& form = std::get<CarryForm>(details.form);
  return add_with_carry(lane, lane.in[0], lane.in[1], form.takes ? lane.carry : 0,
                        lane_bytes(details.type), form.sets);
}

// As a + ~b + 1: the condition code is the carry out of that, which is set where nothing is
// borrowed.
DEMARC_LANE_FUNCTION(sub_integer) {
  if (details.saturate) {
    return saturate_s32(extend_lane(lane.in[0], LaneType::s32) -
                        extend_lane(lane.in[1], LaneType::s32));
  }
  const auto& form = std::get<CarryForm>(details.form);
  return add_with_carry(lane, lane.in[0], ~lane.in[1], form.takes ? lane.carry : 1,
                        lane_bytes(details.type), form.sets);
}

DEMARC_LANE_FUNCTION(mad_integer) {
  const auto& form = std::get<CarryForm>(details.form);
  const unsigned bytes = lane_bytes(details.type);
  const Wide product = signed_lane(details.type)
                           ? Wide{extend_lane(lane.in[0], details.type)} *
                                 Wide{extend_lane(lane.in[1], details.type)}
                           : static_cast<Wide>(UnsignedWide{cut_lane(lane.in[0], bytes)} *
                                               UnsignedWide{cut_lane(lane.in[1], bytes)});
  const auto part =
      static_cast<std::uint64_t>(form.part == ProductPart::high ? product >> (bytes * 8) : product);
  const unsigned out = form.part == ProductPart::wide ? bytes * 2 : bytes;
  if (details.saturate) {
    return saturate_s32(static_cast<std::int64_t>(static_cast<std::int32_t>(part)) +
                        extend_lane(lane.in[2], LaneType::s32));
  }
  return add_with_carry(lane, part, lane.in[2], form.takes ? lane.carry : 0, out, form.sets);
}

DEMARC_LANE_FUNCTION(mul24) {
  const bool is_signed = details.type == LaneType::s32;
  const auto low24 = [&](std::uint64_t bits) {
    const auto shifted = static_cast<std::uint32_t>(bits) << 8;
    return is_signed ? std::int64_t{static_cast<std::int32_t>(shifted) >> 8}
                     : std::int64_t{shifted >> 8};
  };
  const std::int64_t product = low24(lane.in[0]) * low24(lane.in[1]);
  const bool high = std::get<Product24Form>(details.form).high;
  return static_cast<std::uint32_t>(high ? product >> 16 : product);
}

DEMARC_LANE_FUNCTION(mad24) {
  const std::uint64_t product = mul24(lane, details);
  if (details.saturate) {
    return saturate_s32(extend_lane(product, LaneType::s32) +
                        extend_lane(lane.in[2], LaneType::s32));
  }
  return static_cast<std::uint32_t>(product + lane.in[2]);
}

DEMARC_LANE_FUNCTION(sad) {
  const std::int64_t a = extend_lane(lane.in[0], details.type);
  const std::int64_t b = extend_lane(lane.in[1], details.type);
  const bool less = signed_lane(details.type)
                        ? a < b
                        : static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b);
  const std::uint64_t distance =
      less ? static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a)
           : static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
  return cut_lane(lane.in[2] + distance, lane_bytes(details.type));
}

DEMARC_LANE_FUNCTION(popc) {
  return static_cast<std::uint64_t>(std::popcount(lane.in[0]));
}

DEMARC_LANE_FUNCTION(clz) {
  return details.width[0] == 8
             ? static_cast<std::uint64_t>(std::countl_zero(lane.in[0]))
             : static_cast<std::uint64_t>(std::countl_zero(static_cast<std::uint32_t>(lane.in[0])));
}

DEMARC_LANE_FUNCTION(bfind) {
  std::int64_t a = extend_lane(lane.in[0], details.type);
  if (signed_lane(details.type) && a < 0) a = ~a;
  const auto bits = static_cast<std::uint64_t>(a);
  if (bits == 0) return 0xffffffffU;
  const auto at = static_cast<std::uint32_t>(63 - std::countl_zero(bits));
  const bool shift_amount = std::get<FirstBitForm>(details.form).shift_amount;
  return shift_amount ? lane_bytes(details.type) * 8 - 1 - at : at;
}

DEMARC_LANE_FUNCTION(fns) {
  const auto mask = static_cast<std::uint32_t>(lane.in[0]);
  const auto base = static_cast<std::uint32_t>(lane.in[1]);
  auto offset = static_cast<std::int32_t>(lane.in[2]);
  if (base > 31) return 0xffffffffU;
  if (offset == 0) return ((mask >> base) & 1U) != 0 ? base : 0xffffffffU;
  const std::int32_t step = offset < 0 ? -1 : 1;
  for (auto at = static_cast<std::int32_t>(base); at >= 0 && at < 32; at += step) {
    if (((mask >> at) & 1U) == 0) continue;
    offset -= step;
    if (offset == 0) return static_cast<std::uint32_t>(at);
  }
  return 0xffffffffU;
}

DEMARC_LANE_FUNCTION(brev) {
  std::uint64_t result = 0;
  const unsigned width = details.width[0] * 8U;
  for (unsigned i = 0; i < width; ++i) result |= ((lane.in[0] >> i) & 1U) << (width - 1 - i);
  return result;
}

DEMARC_LANE_FUNCTION(bfe) {
  const unsigned width = lane_bytes(details.type) * 8;
  const unsigned top = width - 1;
  const auto position = static_cast<unsigned>(lane.in[1] & 0xff);
  const auto length = static_cast<unsigned>(lane.in[2] & 0xff);
  const std::uint64_t a = lane.in[0];
  std::uint64_t sign = 0;
  if (signed_lane(details.type) && length != 0)
    sign = (a >> std::min(position + length - 1, top)) & 1U;
  std::uint64_t result = 0;
  for (unsigned i = 0; i < width; ++i) {
    const std::uint64_t bit = i < length && position + i <= top ? (a >> (position + i)) & 1U : sign;
    result |= bit << i;
  }
  return result;
}

// in: a (the field), b (the word), position, length
DEMARC_LANE_FUNCTION(bfi) {
  const unsigned width = details.width[0] * 8U;
  const auto position = static_cast<unsigned>(lane.in[2] & 0xff);
  const auto length = static_cast<unsigned>(lane.in[3] & 0xff);
  std::uint64_t result = lane.in[1];
  for (unsigned i = 0; i < length && position + i < width; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << (position + i);
    result = (result & ~bit) | (((lane.in[0] >> i) & 1U) << (position + i));
  }
  return result;
}

DEMARC_LANE_FUNCTION(szext) {
  const auto n = static_cast<std::uint32_t>(lane.in[1]);
  const std::uint32_t length = std::get<AmountForm>(details.form).wraps ? n & 31U : n;
  const auto a = static_cast<std::uint32_t>(lane.in[0]);
  if (length >= 32) return a;
  if (length == 0) return 0;
  if (details.type == LaneType::s32)
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(a << (32 - length)) >>
                                      (32 - length));
  return a & ((1U << length) - 1);
}

DEMARC_LANE_FUNCTION(bmsk) {
  auto position = static_cast<std::uint32_t>(lane.in[0]);
  auto length = static_cast<std::uint32_t>(lane.in[1]);
  if (std::get<AmountForm>(details.form).wraps) {
    position &= 31U;
    length &= 31U;
  }
  if (position >= 32 || length == 0) return 0;
  const std::uint64_t ones = length >= 32 ? 0xffffffffU : (std::uint64_t{1} << length) - 1;
  return (ones << position) & 0xffffffffU;
}

DEMARC_LANE_FUNCTION(dp4a) {
  const auto& form = std::get<DotForm>(details.form);
  std::uint64_t sum = lane.in[2];
  for (unsigned shift = 0; shift < 32; shift += 8) {
    const std::int64_t a =
        extend_lane(lane.in[0] >> shift, form.a_signed ? LaneType::s8 : LaneType::u8);
    const std::int64_t b =
        extend_lane(lane.in[1] >> shift, form.b_signed ? LaneType::s8 : LaneType::u8);
    sum += static_cast<std::uint64_t>(a * b);
  }
  return static_cast<std::uint32_t>(sum);
}

DEMARC_LANE_FUNCTION(dp2a) {
  const auto& form = std::get<DotForm>(details.form);
  std::uint64_t sum = lane.in[2];
  for (unsigned i = 0; i < 2; ++i) {
    const std::int64_t a =
        extend_lane(lane.in[0] >> (16 * i), form.a_signed ? LaneType::s16 : LaneType::u16);
    const std::int64_t b = extend_lane(lane.in[1] >> (8 * i + (form.high ? 16U : 0U)),
                                       form.b_signed ? LaneType::s8 : LaneType::u8);
    sum += static_cast<std::uint64_t>(a * b);
  }
  return static_cast<std::uint32_t>(sum);
}

DEMARC_LANE_FUNCTION(cnot) {
  return lane.in[0] == 0 ? 1 : 0;
}

DEMARC_LANE_FUNCTION(lop3) {
  const auto& form = std::get<Lop3Form>(details.form);
  const std::uint64_t a = lane.in[0];
  const std::uint64_t b = lane.in[1];
  const std::uint64_t c = lane.in[2];
  std::uint64_t result = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if (((form.truth >> i) & 1U) == 0) continue;
    result |= ((i & 4U) != 0 ? a : ~a) & ((i & 2U) != 0 ? b : ~b) & ((i & 1U) != 0 ? c : ~c);
  }
  result &= 0xffffffffU;
  lane.second = joined(form.logic, result != 0, lane.in[3] != 0) ? 1 : 0;
  return result;
}

DEMARC_LANE_FUNCTION(shf_left) {
  const auto c = static_cast<std::uint32_t>(lane.in[2]);
  const std::uint32_t n = std::get<AmountForm>(details.form).wraps ? c & 31U : std::min(c, 32U);
  const std::uint64_t pair = (lane.in[1] << 32) | (lane.in[0] & 0xffffffffU);
  return n == 0 ? pair >> 32 : (pair << n) >> 32 & 0xffffffffU;
}

DEMARC_LANE_FUNCTION(shf_right) {
  const auto c = static_cast<std::uint32_t>(lane.in[2]);
  const std::uint32_t n = std::get<AmountForm>(details.form).wraps ? c & 31U : std::min(c, 32U);
  const std::uint64_t pair = (lane.in[1] << 32) | (lane.in[0] & 0xffffffffU);
  return (pair >> n) & 0xffffffffU;
}

DEMARC_LANE_FUNCTION(prmt) {
  const std::uint64_t pair = (lane.in[1] << 32) | (lane.in[0] & 0xffffffffU);
  const auto selector = static_cast<std::uint32_t>(lane.in[2]);
  std::uint64_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned s = selector & 3U;
    unsigned from = 0;
    bool sign = false;
    switch (std::get<PermuteMode>(details.form)) {
      case PermuteMode::index:
        from = (selector >> (4 * i)) & 7U;
        sign = ((selector >> (4 * i)) & 8U) != 0;
        break;
      case PermuteMode::f4e:
        from = s + i;
        break;
      case PermuteMode::b4e:
        from = (s + 8 - i) & 7U;
        break;
      case PermuteMode::rc8:
        from = s;
        break;
      case PermuteMode::ecl:
        from = std::max(i, s);
        break;
      case PermuteMode::ecr:
        from = std::min(i, s);
        break;
      case PermuteMode::rc16:
        from = (i & 1U) + 2 * (s & 1U);
        break;
    }
    auto byte = static_cast<std::uint8_t>(pair >> (8 * from));
    if (sign) byte = (byte & 0x80U) != 0 ? 0xff : 0;
    result |= std::uint64_t{byte} << (8 * i);
  }
  return result;
}

DEMARC_LANE_FUNCTION(isspacep) {
  const std::uint64_t a = lane.in[0];
  const bool shared = a - shared_window < window_bytes;
  const bool local = a - local_window < window_bytes;
  const bool constant = a - constant_window < window_bytes;
  const bool param = a - param_window < window_bytes;
  switch (std::get<AddressWindow>(details.form)) {
    case AddressWindow::shared:
      return shared ? 1 : 0;
    case AddressWindow::local:
      return local ? 1 : 0;
    case AddressWindow::constant:
      return constant ? 1 : 0;
    case AddressWindow::param:
      return param ? 1 : 0;
    case AddressWindow::global:
      break;
  }
  return shared || local || constant || param ? 0 : 1;
}

DEMARC_LANE_FUNCTION(join_parts) {
  const std::uint32_t bits = std::get<PartForm>(details.form).bits;
  std::uint64_t result = 0;
  for (unsigned i = 0; i < details.sources; ++i) result |= lane.in[i] << (i * bits);
  return result;
}

DEMARC_LANE_FUNCTION(split_part) {
  const auto& form = std::get<PartForm>(details.form);
  return (lane.in[0] >> (form.index * form.bits)) & ((std::uint64_t{1} << form.bits) - 1);
}

DEMARC_LANE_FUNCTION(setp) {
  const auto& form = std::get<CompareForm>(details.form);
  const bool result = compare_lanes(lane.in[0], lane.in[1], details.type, form.how, details.ftz);
  const auto combined = [&](bool value) { return joined(form.logic, value, lane.in[2] != 0); };
  if (details.type == LaneType::f16x2 || details.type == LaneType::bf16x2) {
    const LaneType half = details.type == LaneType::f16x2 ? LaneType::f16 : LaneType::bf16;
    lane.second = combined(compare_lanes(lane.in[0] >> 16 & 0xffff, lane.in[1] >> 16 & 0xffff, half,
                                         form.how, details.ftz))
                      ? 1
                      : 0;
    return combined(
               compare_lanes(lane.in[0] & 0xffff, lane.in[1] & 0xffff, half, form.how, details.ftz))
               ? 1
               : 0;
  }
  lane.second = combined(!result) ? 1 : 0;
  return combined(result) ? 1 : 0;
}

// type: of the result; from: of what is compared
DEMARC_LANE_FUNCTION(set) {
  const auto& form = std::get<CompareForm>(details.form);
  const auto value = [&](bool result) { return joined(form.logic, result, lane.in[2] != 0); };
  if (details.from == LaneType::f16x2 || details.from == LaneType::bf16x2) {
    const bool is_half = details.from == LaneType::f16x2;
    const LaneType half = is_half ? LaneType::f16 : LaneType::bf16;
    const bool floating = details.type == LaneType::f16x2 || details.type == LaneType::bf16x2;
    const std::uint64_t yes = !floating ? 0xffffU : (is_half ? 0x3c00U : 0x3f80U);
    const bool low =
        value(compare_lanes(lane.in[0] & 0xffff, lane.in[1] & 0xffff, half, form.how, details.ftz));
    const bool high = value(compare_lanes(lane.in[0] >> 16 & 0xffff, lane.in[1] >> 16 & 0xffff,
                                          half, form.how, details.ftz));
    return (low ? yes : 0) | (high ? yes << 16 : 0);
  }
  const bool result =
      value(compare_lanes(lane.in[0], lane.in[1], details.from, form.how, details.ftz));
  if (!result) return 0;
  switch (details.type) {
    case LaneType::f32:
      return 0x3f800000U;
    case LaneType::f16:
      return 0x3c00U;
    case LaneType::bf16:
      return 0x3f80U;
    case LaneType::u16:
    case LaneType::s16:
      return 0xffffU;
    default:
      return 0xffffffffU;
  }
}

DEMARC_LANE_FUNCTION(slct) {
  bool first = false;
  if (details.from == LaneType::f32) {
    first = lane_to_double(lane.in[2], LaneType::f32) >= 0 || (lane.in[2] & 0x7fffffffU) == 0;
    if (details.ftz && (lane.in[2] & 0x7f800000U) == 0) first = true;
  } else {
    first = static_cast<std::int32_t>(lane.in[2]) >= 0;
  }
  return first ? lane.in[0] : lane.in[1];
}

// Saturating pack: d = {a, b} in `type` elements, above them the low part of c.
DEMARC_LANE_FUNCTION(cvt_pack) {
  const unsigned bits = lane_bytes(details.type) * 8;
  const std::uint64_t a =
      convert_lane(lane.in[0], LaneType::s32, details.type, Rounding::none, true, false, false);
  const std::uint64_t b =
      convert_lane(lane.in[1], LaneType::s32, details.type, Rounding::none, true, false, false);
  const std::uint64_t pair = b | (a << bits);
  return bits == 16 ? pair : (pair | (lane.in[2] << (2 * bits))) & 0xffffffffU;
}

#undef DEMARC_LANE_FUNCTION
}  // namespace lane
}  // namespace demarc::emulate
