// What lowering tells the lane functions of video instructions, in LaneDetails::table: the
// operation in bits 0-7, the flags below, a Compare in bits 16-23.
#pragma once

#include <cstdint>

namespace demarc::emulate {

enum class VideoOperation : std::uint8_t {
  add,
  sub,
  absdiff,
  min,
  max,
  average,
  shift_left,
  shift_right,
  set
};

inline constexpr std::uint32_t video_wrap = 1U << 8;            // shifts: the amount modulo 32
inline constexpr std::uint32_t video_bytes = 1U << 9;           // four parts, not two
inline constexpr std::uint32_t video_minus_product = 1U << 10;  // vmad with -a or -b
inline constexpr std::uint32_t video_minus_c = 1U << 11;
inline constexpr std::uint32_t video_plus_one = 1U << 12;  // vmad.po

}  // namespace demarc::emulate
