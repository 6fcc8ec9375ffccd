// Video instructions of one lane (PTX ISA 9.7.18).
//
// LaneDetails: type is that of d, from that of a, other that of b.
// Scalar ones: select[0..2] are the parts of d, a and b: 0 all of the word, 1-4 byte 0-3, 5-6 half
// 0-1. combine: what follows (0 nothing, 1 add, 2 min, 3 max, with c). table: the operation in bits
// 0-7, flags above.
#include <algorithm>

#include "lanes/functions.hpp"
#include "lanes/video.hpp"

namespace demarc::emulate {

namespace {

__extension__ using VideoWide = __int128;

bool video_signed(LaneType type) {
  return type == LaneType::s32;
}

// `width` bits of word at `shift`, extended by their sign where the type has one.
std::int64_t video_field(std::uint64_t word, unsigned shift, unsigned width, bool is_signed) {
  const std::uint64_t ones = (std::uint64_t{1} << width) - 1;
  const std::uint64_t field = (word >> shift) & ones;
  const bool negative = is_signed && ((field >> (width - 1)) & 1U) != 0;
  return static_cast<std::int64_t>(negative ? field | ~ones : field);
}

struct Part {
  unsigned shift;
  unsigned width;
};
Part part_of(std::uint32_t select) {
  if (select == 0) return {0, 32};
  if (select <= 4) return {8 * (select - 1), 8};
  return {16 * (select - 5), 16};
}

std::int64_t video_clamp(std::int64_t value, unsigned width, bool is_signed) {
  const std::int64_t most = (std::int64_t{1} << (width - (is_signed ? 1 : 0))) - 1;
  const std::int64_t least = is_signed ? -most - 1 : 0;
  return std::clamp(value, least, most);
}

std::int64_t video_operation(VideoOperation operation, std::int64_t a, std::int64_t b,
                             std::uint32_t compare) {
  switch (operation) {
    case VideoOperation::add:
      return a + b;
    case VideoOperation::sub:
      return a - b;
    case VideoOperation::absdiff:
      return a < b ? b - a : a - b;
    case VideoOperation::min:
      return std::min(a, b);
    case VideoOperation::max:
      return std::max(a, b);
    case VideoOperation::average:
      // Half away from zero.
      return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case VideoOperation::shift_left:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b);
    case VideoOperation::shift_right:
      return a >> b;
    case VideoOperation::set:
      switch (static_cast<Compare>(compare)) {
        case Compare::eq:
          return a == b ? 1 : 0;
        case Compare::ne:
          return a != b ? 1 : 0;
        case Compare::lt:
          return a < b ? 1 : 0;
        case Compare::le:
          return a <= b ? 1 : 0;
        case Compare::gt:
          return a > b ? 1 : 0;
        default:
          return a >= b ? 1 : 0;
      }
  }
  return 0;
}

}  // namespace

namespace lane {

#define DEMARC_LANE_FUNCTION(name) std::uint64_t name(LaneInput& lane, const LaneDetails& details)

DEMARC_LANE_FUNCTION(video) {
  const Part a_part = part_of(details.select[1]);
  const Part b_part = part_of(details.select[2]);
  const auto operation = static_cast<VideoOperation>(details.table & 0xff);
  const std::int64_t a =
      video_field(lane.in[0], a_part.shift, a_part.width, video_signed(details.from));
  std::int64_t b = video_field(lane.in[1], b_part.shift, b_part.width, video_signed(details.other));
  if (operation == VideoOperation::shift_left || operation == VideoOperation::shift_right) {
    b = (details.table & video_wrap) != 0 ? b & 31 : std::min<std::int64_t>(b, 32);
  }
  const Part d_part = part_of(details.select[0]);
  const bool is_signed = video_signed(details.type);
  std::int64_t value = video_operation(operation, a, b, (details.table >> 16) & 0xff);
  if (details.saturate) value = video_clamp(value, d_part.width, is_signed);
  const auto low = static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
  const auto c = static_cast<std::uint32_t>(lane.in[2]);
  if (d_part.width < 32) {
    const std::uint32_t ones = ((1U << d_part.width) - 1) << d_part.shift;
    return (c & ~ones) | ((low << d_part.shift) & ones);
  }
  switch (details.combine) {
    case 1:
      return low + c;
    case 2:
    case 3: {
      const bool less =
          is_signed ? static_cast<std::int32_t>(low) < static_cast<std::int32_t>(c) : low < c;
      return less == (details.combine == 2) ? low : c;
    }
    default:
      return low;
  }
}

DEMARC_LANE_FUNCTION(video_mad) {
  const Part a_part = part_of(details.select[1]);
  const Part b_part = part_of(details.select[2]);
  const bool minus_product = (details.table & video_minus_product) != 0;
  const bool minus_c = (details.table & video_minus_c) != 0;
  const bool is_signed =
      video_signed(details.from) || video_signed(details.other) || minus_product || minus_c;
  const VideoWide a =
      video_field(lane.in[0], a_part.shift, a_part.width, video_signed(details.from));
  const VideoWide b =
      video_field(lane.in[1], b_part.shift, b_part.width, video_signed(details.other));
  VideoWide c = video_field(lane.in[2], 0, 32, is_signed);
  VideoWide product = a * b;
  if (minus_product) product = -product;
  if (minus_c) c = -c;
  VideoWide value = product + c + ((details.table & video_plus_one) != 0 ? 1 : 0);
  value >>= details.combine;  // the scale: 0, 7 or 15
  if (details.saturate) {
    const VideoWide most = is_signed ? 0x7fffffffLL : 0xffffffffLL;
    value = std::clamp<VideoWide>(value, is_signed ? -most - 1 : 0, most);
  }
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
}

// select[0]: mask of the parts that are written; select[1], select[2]: for part i, in bits 4i..,
// which part of the pair {b, a} it takes. table: the operation, video_bytes for four parts.
DEMARC_LANE_FUNCTION(video_parts) {
  const auto operation = static_cast<VideoOperation>(details.table & 0xff);
  const bool bytes = (details.table & video_bytes) != 0;
  const unsigned width = bytes ? 8 : 16;
  const std::uint64_t pair = (lane.in[0] & 0xffffffffU) | (lane.in[1] << 32);
  const auto c = static_cast<std::uint32_t>(lane.in[2]);
  std::uint32_t sum = c;
  std::uint32_t result = c;
  for (unsigned i = 0; i < 32 / width; ++i) {
    if (((details.select[0] >> i) & 1U) == 0) continue;
    const unsigned a_at = (details.select[1] >> (4 * i)) & 15U;
    const unsigned b_at = (details.select[2] >> (4 * i)) & 15U;
    const std::int64_t a = video_field(pair, a_at * width, width, video_signed(details.from));
    const std::int64_t b = video_field(pair, b_at * width, width, video_signed(details.other));
    std::int64_t value = video_operation(operation, a, b, (details.table >> 16) & 0xff);
    if (details.saturate) value = video_clamp(value, width, video_signed(details.type));
    const auto low = static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
    sum += low;
    const std::uint32_t ones = ((1U << width) - 1) << (i * width);
    result = (result & ~ones) | ((low << (i * width)) & ones);
  }
  return details.combine != 0 ? sum : result;
}

#undef DEMARC_LANE_FUNCTION
}  // namespace lane
}  // namespace demarc::emulate
