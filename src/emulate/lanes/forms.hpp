// What lowering tells a lane function about its instruction beyond its types. A function takes one
// of these; std::get throws where lowering gave it another one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>

namespace demarc::emulate {

enum class Compare : std::uint8_t {
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan
};

enum class ProductPart : std::uint8_t { low, high, wide };

// How a predicate joins what was computed.
enum class Logic : std::uint8_t { none, conjunction, disjunction, exclusive };

// Integer add, sub and mad with a condition code.
struct CarryForm {
  bool sets = false;   // .cc
  bool takes = false;  // addc, subc, madc
  ProductPart part = ProductPart::low;
};

struct Product24Form {
  bool high = false;  // bits 16 to 47, else 0 to 31
};

// szext, bmsk, shf: the amount modulo 32 (.wrap), else at most 32 (.clamp).
struct AmountForm {
  bool wraps = false;
};

struct FirstBitForm {
  bool shift_amount = false;  // bfind.shiftamt
};

struct DotForm {
  bool a_signed = false;
  bool b_signed = false;
  bool high = false;  // dp2a.hi
};

struct Lop3Form {
  std::uint8_t truth = 0;     // bit 4a + 2b + c: the result for these bits
  Logic logic = Logic::none;  // of the second result
};

enum class PermuteMode : std::uint8_t { index, f4e, b4e, rc8, ecl, ecr, rc16 };

enum class AddressWindow : std::uint8_t { global, shared, local, constant, param };

enum class FloatProperty : std::uint8_t {
  finite,
  infinite,
  number,
  not_a_number,
  normal,
  subnormal
};

struct CompareForm {
  Compare how = Compare::eq;
  Logic logic = Logic::none;
};

// Parts of a register that a vector move joins or splits.
struct PartForm {
  std::uint32_t bits = 0;   // per part
  std::uint32_t index = 0;  // index of the one that is split off
};

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

// Bits [shift, shift + width) of a word.
struct VideoPart {
  unsigned shift = 0;
  unsigned width = 32;
};

// What follows a scalar operation, with c.
enum class VideoThen : std::uint8_t { nothing, add, min, max };

struct VideoForm {
  VideoOperation operation = VideoOperation::add;
  Compare compare = Compare::eq;  // of set
  bool wraps = false;             // shifts: the amount modulo 32, else at most 32
  VideoThen then = VideoThen::nothing;
  VideoPart d, a, b;
};

struct VideoMadForm {
  VideoPart a, b;
  bool minus_product = false;
  bool minus_c = false;
  bool plus_one = false;
  unsigned scale = 0;  // bits that the sum is shifted right
};

// Two or four parts of a word at once.
struct VideoPartsForm {
  VideoOperation operation = VideoOperation::add;
  Compare compare = Compare::eq;
  unsigned parts = 2;
  bool sums = false;  // the parts are added to c
  std::array<bool, 4> written{};
  // Which part of the pair {b, a} the operands of a part are.
  std::array<unsigned, 4> a{};
  std::array<unsigned, 4> b{};
};

using LaneForm = std::variant<std::monostate, CarryForm, Product24Form, AmountForm, FirstBitForm,
                              DotForm, Lop3Form, PermuteMode, AddressWindow, FloatProperty,
                              CompareForm, PartForm, VideoForm, VideoMadForm, VideoPartsForm>;

}  // namespace demarc::emulate
