// Writes the address arithmetic: masks insert bits, remainders look up a page in a table.
#include "demarc/color/translation.hpp"

#include <algorithm>
#include <bit>

#include "demarc/color/coloring.hpp"
#include "demarc/ptx/constant_operands.hpp"
#include "parity_arithmetic.hpp"

namespace demarc::color {
namespace {

constexpr std::string_view registers =
    "\t.reg .b64 %demarc_a, %demarc_h;\n\t.reg .b32 %demarc_l, %demarc_u, %demarc_o, %demarc_x, "
    "%demarc_s;\n";
// Byte of RemainderColoring::table() where the patterns of a chunk's higher bits begin.
constexpr std::uint32_t table_of_high = 512;
constexpr std::string_view table_registers = "\t.reg .b16 %demarc_t;\n";

Result<void> check_shape(RemainderShape shape) {
  if (shape.chunk_shift >= 4 && shape.chunk_shift <= 12 && shape.page_shift > 0 &&
      shape.page_shift <= 16 && shape.pattern_bits <= shape.page_shift) {
    return {};
  }
  return invalid_input(
      "coloured addressing: chunks of 2^{} bytes, 2^{} chunks per page and {} table bits are not "
      "possible; a chunk has 2^4 to 2^12 bytes, a page 2^1 to 2^16 chunks, and the second exponent "
      "limits the table bits",
      shape.chunk_shift, shape.page_shift, shape.pattern_bits);
}

Result<void> check_addressing(const RemainderAddressing& addressing) {
  const auto& [shape, constants] = addressing;
  DEMARC_CHECK(check_shape(shape));
  const std::uint64_t page_bytes = std::uint64_t{1} << (shape.chunk_shift + shape.page_shift);
  if (constants.end != 0 && constants.reciprocal_shift < 32 && constants.arena % page_bytes == 0) {
    return {};
  }
  return invalid_input(
      "coloured addressing: {} chunks, a quotient's shift of {} and an arena at {:#x} are not "
      "possible; there must be a chunk, the shift must be below 32, and the arena must lie at a "
      "multiple of {} bytes",
      constants.end, constants.reciprocal_shift, constants.arena, page_bytes);
}

using RemainderOperands = ptx::ConstantOperands<RemainderConstants>;

// As RemainderSteps says. The number of a chunk has 32 bits: windows
// repeat after 2^40 bytes.
std::string address_arithmetic(RemainderShape shape, const RemainderOperands& operands,
                               const ptx::Module& module) {
  using Constants = RemainderConstants;
  // `op` with `member` as its last operand.
  const auto with = [&](std::string_view op, auto member) {
    return fmt::format("\t{}, {};\n", op, operands.operand(member));
  };
  // From the table that begins `at` bytes behind the address in %demarc_h.
  const auto look_up = [policy = ptx::kept_in_l1(module)](std::string_view type, std::uint32_t at) {
    return fmt::format("\tld.global.nc{}.{} \t%demarc_t, [%demarc_h+{}];\n", policy, type, at);
  };
  std::string out = fmt::format(
      "\tshr.u64 \t%demarc_h, %demarc_a, {};\n\tcvt.u32.u64 \t%demarc_l, %demarc_h;\n"
      "\tcvt.u32.u64 \t%demarc_o, %demarc_a;\n",
      shape.chunk_shift);
  out += with("sub.u32 \t%demarc_l, %demarc_l", &Constants::before);
  out += with("min.u32 \t%demarc_l, %demarc_l", &Constants::end);
  out += with("mul.hi.u32 \t%demarc_u, %demarc_l", &Constants::reciprocal);
  // A shift by a number that is known to be 0 is none.
  if (operands.known() ? operands.known()->reciprocal_shift != 0 : shape.shifts_quotients) {
    out += with("shr.u32 \t%demarc_u, %demarc_u", &Constants::reciprocal_shift);
  }
  out += with("mul.lo.u32 \t%demarc_u, %demarc_u", &Constants::skipped);
  out += fmt::format(
      "\tadd.u32 \t%demarc_l, %demarc_l, %demarc_u;\n\tshr.u32 \t%demarc_u, %demarc_l, {};\n"
      "\tcvt.u64.u32 \t%demarc_h, %demarc_u;\n",
      shape.page_shift);
  out += with("add.s64 \t%demarc_h, %demarc_h", &Constants::pages);
  out += look_up("u8", 0) + "\tcvt.u32.u16 \t%demarc_x, %demarc_t;\n";
  for (const auto& [first_bit, at] : {std::pair{0, 0U}, {8, table_of_high}}) {
    out += fmt::format(
        "\tbfe.u32 \t%demarc_u, %demarc_l, {}, 8;\n\tmul.wide.u32 \t%demarc_h, %demarc_u, 2;\n",
        first_bit);
    out += with("add.s64 \t%demarc_h, %demarc_h", &Constants::table) + look_up("u16", at) +
           "\tcvt.u32.u16 \t%demarc_u, %demarc_t;\n\txor.b32 \t%demarc_x, %demarc_x, %demarc_u;\n";
  }
  const std::uint32_t not_of_patterns = ~((1U << shape.pattern_bits) - 1);
  out += fmt::format(
      "\tand.b32 \t%demarc_l, %demarc_l, {};\n\txor.b32 \t%demarc_x, %demarc_x, %demarc_l;\n"
      "\tmul.wide.u32 \t%demarc_a, %demarc_x, {};\n",
      not_of_patterns, 1U << shape.chunk_shift);
  out += with("add.s64 \t%demarc_a, %demarc_a", &Constants::arena);
  return out + fmt::format(
                   "\tand.b32 \t%demarc_o, %demarc_o, {};\n\tcvt.u64.u32 \t%demarc_h, %demarc_o;\n"
                   "\tor.b64 \t%demarc_a, %demarc_a, %demarc_h;\n",
                   (1U << shape.chunk_shift) - 1);
}

}  // namespace

Result<ptx::Translation> translation_of(const Parities& addressing) {
  DEMARC_CHECK(check_parities(addressing));
  return ptx::Translation{.declarations = std::string(registers),
                          .arithmetic = parity_arithmetic(addressing),
                          .granule = granule_of(addressing.masks)};
}

Result<ptx::Translation> translation_of(const RemainderAddressing& addressing,
                                        const ptx::Module& module) {
  DEMARC_CHECK(check_addressing(addressing));
  const RemainderOperands operands(addressing.constants, 0);
  return ptx::Translation{.declarations = fmt::format("{}{}", table_registers, registers),
                          .arithmetic = address_arithmetic(addressing.shape, operands, module),
                          .granule = std::uint64_t{1} << addressing.shape.chunk_shift};
}

Result<ptx::Translation> translation_of(RemainderShape shape, const ptx::Module& module) {
  DEMARC_CHECK(check_shape(shape));
  const RemainderOperands operands(std::nullopt, sizeof(ptx::ColoredPlaces));
  using Constants = RemainderConstants;
  std::string prologue =
      operands.loads(&Constants::arena, &Constants::table, &Constants::pages, &Constants::before,
                     &Constants::end, &Constants::reciprocal, &Constants::skipped);
  if (shape.shifts_quotients) prologue += operands.loads(&Constants::reciprocal_shift);
  return ptx::Translation{.prologue = std::move(prologue),
                          .declarations = fmt::format("{}{}", table_registers, registers),
                          .arithmetic = address_arithmetic(shape, operands, module),
                          .granule = std::uint64_t{1} << shape.chunk_shift,
                          .constant_bytes = sizeof(Constants)};
}

DeviceAddress colored_pointer(DeviceAddress arena, LinearByte linear, const Parities& parities) {
  return DeviceAddress((arena.raw() >> parities.masks.size()) + linear.raw());
}

}  // namespace demarc::color
