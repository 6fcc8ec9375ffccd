// Video instructions of one lane (PTX ISA 9.7.18).
//
// LaneDetails: type is that of d, from that of a, other that of b.
#include <algorithm>

#include "lanes/functions.hpp"

namespace demarc::emulate {

namespace {

__extension__ using VideoWide = __int128;

bool video_signed(LaneType type) {
  return type == LaneType::s32;
}

// The bits of a part, extended by their sign where the type has one.
std::int64_t video_field(std::uint64_t word, VideoPart part, bool is_signed) {
  const std::uint64_t ones = (std::uint64_t{1} << part.width) - 1;
  const std::uint64_t field = (word >> part.shift) & ones;
  const bool negative = is_signed && ((field >> (part.width - 1)) & 1U) != 0;
  return static_cast<std::int64_t>(negative ? field | ~ones : field);
}

std::int64_t video_clamp(std::int64_t value, unsigned width, bool is_signed) {
  const std::int64_t most = (std::int64_t{1} << (width - (is_signed ? 1 : 0))) - 1;
  const std::int64_t least = is_signed ? -most - 1 : 0;
  return std::clamp(value, least, most);
}

std::int64_t video_operation(VideoOperation operation, std::int64_t a, std::int64_t b,
                             Compare compare) {
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
      switch (compare) {
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
  const auto& form = std::get<VideoForm>(details.form);
  const std::int64_t a = video_field(lane.in[0], form.a, video_signed(details.from));
  std::int64_t b = video_field(lane.in[1], form.b, video_signed(details.other));
  if (form.operation == VideoOperation::shift_left ||
      form.operation == VideoOperation::shift_right) {
    b = form.wraps ? b & 31 : std::min<std::int64_t>(b, 32);
  }
  const bool is_signed = video_signed(details.type);
  std::int64_t value = video_operation(form.operation, a, b, form.compare);
  if (details.saturate) value = video_clamp(value, form.d.width, is_signed);
  const auto low = static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
  const auto c = static_cast<std::uint32_t>(lane.in[2]);
  if (form.d.width < 32) {
    const std::uint32_t ones = ((1U << form.d.width) - 1) << form.d.shift;
    return (c & ~ones) | ((low << form.d.shift) & ones);
  }
  switch (form.then) {
    case VideoThen::nothing:
      break;
    case VideoThen::add:
      return low + c;
    case VideoThen::min:
    case VideoThen::max: {
      const bool less =
          is_signed ? static_cast<std::int32_t>(low) < static_cast<std::int32_t>(c) : low < c;
      return less == (form.then == VideoThen::min) ? low : c;
    }
  }
  return low;
}

DEMARC_LANE_FUNCTION(video_mad) {
  const auto& form = std::get<VideoMadForm>(details.form);
  const bool is_signed = video_signed(details.from) || video_signed(details.other) ||
                         form.minus_product || form.minus_c;
  const VideoWide a = video_field(lane.in[0], form.a, video_signed(details.from));
  const VideoWide b = video_field(lane.in[1], form.b, video_signed(details.other));
  VideoWide c = video_field(lane.in[2], {}, is_signed);
  VideoWide product = a * b;
  if (form.minus_product) product = -product;
  if (form.minus_c) c = -c;
  VideoWide value = product + c + (form.plus_one ? 1 : 0);
  value >>= form.scale;
  if (details.saturate) {
    const VideoWide most = is_signed ? 0x7fffffffLL : 0xffffffffLL;
    value = std::clamp<VideoWide>(value, is_signed ? -most - 1 : 0, most);
  }
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
}

DEMARC_LANE_FUNCTION(video_parts) {
  const auto& form = std::get<VideoPartsForm>(details.form);
  const unsigned width = 32 / form.parts;
  const std::uint64_t pair = (lane.in[0] & 0xffffffffU) | (lane.in[1] << 32);
  const auto c = static_cast<std::uint32_t>(lane.in[2]);
  std::uint32_t sum = c;
  std::uint32_t result = c;
  for (unsigned i = 0; i < form.parts; ++i) {
    if (!form.written[i]) continue;
    const auto part = [&](unsigned index) { return VideoPart{index * width, width}; };
    const std::int64_t a = video_field(pair, part(form.a[i]), video_signed(details.from));
    const std::int64_t b = video_field(pair, part(form.b[i]), video_signed(details.other));
    std::int64_t value = video_operation(form.operation, a, b, form.compare);
    if (details.saturate) value = video_clamp(value, width, video_signed(details.type));
    const auto low = static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
    sum += low;
    const std::uint32_t ones = ((1U << width) - 1) << (i * width);
    result = (result & ~ones) | ((low << (i * width)) & ones);
  }
  return form.sums ? sum : result;
}

#undef DEMARC_LANE_FUNCTION
}  // namespace lane
}  // namespace demarc::emulate
