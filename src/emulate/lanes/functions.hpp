// Instructions without a vector loop of their own: a function of one lane, called for every
// executing lane.
#pragma once

#include <cstdint>

#include "lanes/forms.hpp"
#include "warp.hpp"

namespace demarc::emulate {

// Types of values as lane functions see them.
enum class LaneType : std::uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  tf32,
  f32,
  f64,
  f16x2,
  bf16x2,
  u16x2,
  s16x2,
  e4m3x2,
  e5m2x2,
  f32x2
};
enum class Rounding : std::uint8_t { none, rn, rna, rz, rm, rp, rni, rzi, rmi, rpi };

struct LaneDetails;
struct LaneInput {
  std::uint64_t in[5] = {};  // zero-extended from the operand's width; a predicate is 0 or 1
  std::uint32_t carry = 0;   // condition code, in and out
  std::uint64_t second = 0;  // value of the second destination
};
using LaneFunction = std::uint64_t (*)(LaneInput&, const LaneDetails&);

struct LaneDetails {
  LaneFunction function = nullptr;
  std::uint8_t sources = 0;
  std::uint8_t width[5] = {};     // bytes of each source register; 0: predicate
  std::uint8_t uniform[5] = {};   // the source is a uniform slot
  std::uint32_t slot[5] = {};     // frame offsets
  bool negated[5] = {};           // predicate sources
  std::uint8_t result_width = 0;  // 0: predicate
  bool has_result = true;
  bool has_second = false;
  std::uint8_t second_width = 0;
  std::uint32_t second_slot = 0;
  bool uses_carry = false;
  // What the function needs to know about the instruction.
  LaneType type = LaneType::none;
  LaneType from = LaneType::none;  // of cvt and set: the source type
  Rounding rounding = Rounding::none;
  bool ftz = false;
  bool saturate = false;
  bool relu = false;
  bool nan = false;                 // min.NaN
  bool abs = false;                 // min.xorsign.abs
  LaneType other = LaneType::none;  // of video instructions: the type of b
  LaneForm form;
};

// Runs MicroOp::aux, a LaneDetails.
const MicroOp* run_lanes(Warp& warp, const MicroOp* op);

// Bits of `type` to a double (exact for every type up to f64 and 53-bit integers) and back with
// rounding.
[[nodiscard]] double lane_to_double(std::uint64_t bits, LaneType type);
[[nodiscard]] std::uint64_t lane_from_double(double value, LaneType type, Rounding rounding);
[[nodiscard]] std::uint64_t convert_lane(std::uint64_t bits, LaneType from, LaneType to,
                                         Rounding rounding, bool saturate, bool ftz, bool relu);
[[nodiscard]] bool compare_lanes(std::uint64_t a, std::uint64_t b, LaneType type, Compare how,
                                 bool ftz);
[[nodiscard]] unsigned lane_bytes(LaneType type);

namespace lane {
#define DEMARC_LANE_FUNCTION(name) std::uint64_t name(LaneInput& lane, const LaneDetails& details)
DEMARC_LANE_FUNCTION(
    add);  // floating point with rounding modes, saturation, f16, packed; integer .sat, .cc
DEMARC_LANE_FUNCTION(sub);
DEMARC_LANE_FUNCTION(mul);
DEMARC_LANE_FUNCTION(fma);
DEMARC_LANE_FUNCTION(div);
DEMARC_LANE_FUNCTION(sqrt);
DEMARC_LANE_FUNCTION(rcp);
DEMARC_LANE_FUNCTION(rsqrt);
DEMARC_LANE_FUNCTION(sin);
DEMARC_LANE_FUNCTION(cos);
DEMARC_LANE_FUNCTION(lg2);
DEMARC_LANE_FUNCTION(ex2);
DEMARC_LANE_FUNCTION(tanh);
DEMARC_LANE_FUNCTION(neg);
DEMARC_LANE_FUNCTION(abs);
DEMARC_LANE_FUNCTION(min);
DEMARC_LANE_FUNCTION(max);
DEMARC_LANE_FUNCTION(copysign);
DEMARC_LANE_FUNCTION(testp);
DEMARC_LANE_FUNCTION(cvt);
DEMARC_LANE_FUNCTION(cvt_two);     // d = {convert(a), convert(b)}
DEMARC_LANE_FUNCTION(cvt_unpack);  // packed narrow floats to f16x2
DEMARC_LANE_FUNCTION(cvt_halves);  // f16x2 to packed narrow floats
DEMARC_LANE_FUNCTION(cvt_pack);
DEMARC_LANE_FUNCTION(setp);
DEMARC_LANE_FUNCTION(set);
DEMARC_LANE_FUNCTION(slct);
DEMARC_LANE_FUNCTION(add_integer);  // .cc, c, .sat
DEMARC_LANE_FUNCTION(sub_integer);
DEMARC_LANE_FUNCTION(mad_integer);  // hi/lo/wide with carry, .sat
DEMARC_LANE_FUNCTION(mul24);
DEMARC_LANE_FUNCTION(mad24);
DEMARC_LANE_FUNCTION(sad);
DEMARC_LANE_FUNCTION(popc);
DEMARC_LANE_FUNCTION(clz);
DEMARC_LANE_FUNCTION(bfind);
DEMARC_LANE_FUNCTION(fns);
DEMARC_LANE_FUNCTION(brev);
DEMARC_LANE_FUNCTION(bfe);
DEMARC_LANE_FUNCTION(bfi);
DEMARC_LANE_FUNCTION(szext);
DEMARC_LANE_FUNCTION(bmsk);
DEMARC_LANE_FUNCTION(dp4a);
DEMARC_LANE_FUNCTION(dp2a);
DEMARC_LANE_FUNCTION(cnot);
DEMARC_LANE_FUNCTION(lop3);
DEMARC_LANE_FUNCTION(shf_left);
DEMARC_LANE_FUNCTION(shf_right);
DEMARC_LANE_FUNCTION(prmt);
DEMARC_LANE_FUNCTION(isspacep);
DEMARC_LANE_FUNCTION(join_parts);  // mov.b64 d, {a, b}
DEMARC_LANE_FUNCTION(split_part);  // mov.b64 {d, e}, a: one of them
DEMARC_LANE_FUNCTION(video);       // vadd and its kin, on one part of a word
DEMARC_LANE_FUNCTION(video_mad);
DEMARC_LANE_FUNCTION(video_parts);  // vadd2, vadd4 and their kin
#undef DEMARC_LANE_FUNCTION
}  // namespace lane

}  // namespace demarc::emulate
