// Writes the instructions that insert the bits of parities into a linear address.
//
// A position is the linear address with a bit inserted at each pivot, a bit of its mask alone.
// All pivots are below bit 32, so the upper word is shifted bits of the address. The lower word is
// chosen bit by bit: below the first pivot the address, above it the address shifted by one, and so
// on; ptxas makes one instruction of each choice.
//
// The inserted bit is the parity of the mask's other bits. Two of them that are neighbours cost one
// instruction: adding 1 at the lower one leaves their parity in the upper one. What lies beside
// such a bit is not chosen, and may be anything.
#include "parity_arithmetic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "demarc/base/gf2.hpp"
#include "demarc/color/coloring.hpp"

namespace demarc::color {
namespace {

// Up to this many terms, shifts and XORs beat a population count, which runs at a quarter of their
// rate.
constexpr std::size_t max_terms = 4;

// A bit of the linear address, or the parity of it and the bit below it.
struct Term {
  int bit = 0;
  bool with_lower = false;
};

// From the bits of a linear address that are set in `bits`. Pairs come first: to what is added
// there anyway, ptxas adds the colour for nothing.
std::vector<Term> terms_of(std::uint32_t bits) {
  std::vector<Term> terms;
  while (bits != 0) {
    const int lowest = std::countr_zero(bits);
    const bool pair = (bits >> (lowest + 1) & 1U) != 0;
    terms.push_back({lowest + (pair ? 1 : 0), pair});
    bits &= ~((pair ? 3U : 1U) << lowest);
  }
  std::stable_partition(terms.begin(), terms.end(),
                        [](const Term& term) { return term.with_lower; });
  return terms;
}

std::uint64_t with_zeros(const Parities& parities, LinearByte linear) {
  std::uint64_t value = linear.raw();
  for (std::size_t i = 0; i < parities.masks.size(); ++i) {
    value += value & ~((std::uint64_t{1} << parities.pivot(i)) - 1);
  }
  return value;
}

// Bits of a linear address that become those of `position`, which has none at the pivots.
std::uint32_t linear_bits(std::uint32_t position, const Parities& parities) {
  for (std::size_t i = parities.masks.size(); i-- > 0;) {
    const std::uint32_t below = (1U << parities.pivot(i)) - 1;
    position = (position & below) | (position >> 1U & ~below);
  }
  return position;
}

// `term` at bit `pivot` of `to`, XORed with `flips`; the bits of a colour.
std::string put(const Term& term, int pivot, std::uint32_t flips, const char* to) {
  const int down = term.bit - pivot;
  const std::uint32_t added =
      (flips << pivot) + (term.with_lower ? 1U << static_cast<unsigned>(pivot - 1) : 0);
  std::string out = fmt::format("\t{} \t{}, %demarc_l, {};\n", down < 0 ? "shl.b32" : "shr.u32", to,
                                down < 0 ? -down : down);
  if (added != 0) out += fmt::format("\tadd.u32 \t{0}, {0}, {1};\n", to, added);
  return out;
}

// Puts the parity of `bits` of the linear address, XORed with `flips`, at bit `pivot` of %demarc_x.
std::string parity_text(std::uint32_t bits, int pivot, std::uint32_t flips) {
  if (bits == 0) return fmt::format("\tmov.b32 \t%demarc_x, {};\n", flips << pivot);
  const std::vector<Term> terms = terms_of(bits);
  if (terms.size() > max_terms) {
    return fmt::format(
        "\tand.b32 \t%demarc_x, %demarc_l, {};\n\tpopc.b32 \t%demarc_x, %demarc_x;\n"
        "\tshl.b32 \t%demarc_x, %demarc_x, {};\n\tadd.u32 \t%demarc_x, %demarc_x, {};\n",
        bits, pivot, flips << pivot);
  }
  std::string out = put(terms.front(), pivot, flips, "%demarc_x");
  for (std::size_t i = 1; i < terms.size(); ++i) {
    out += put(terms[i], pivot, 0, "%demarc_s");
    out += "\txor.b32 \t%demarc_x, %demarc_x, %demarc_s;\n";
  }
  return out;
}

// %demarc_o keeps its bits below `bit` and takes the others from `from`. In this form ptxas finds
// the one instruction.
std::string keep_below(int bit, const char* from) {
  return fmt::format(
      "\txor.b32 \t{0}, {0}, %demarc_o;\n\tand.b32 \t{0}, {0}, {1};\n"
      "\txor.b32 \t%demarc_o, %demarc_o, {0};\n",
      from, ~static_cast<std::uint32_t>((std::uint64_t{1} << bit) - 1));
}

}  // namespace

Result<void> check_parities(const Parities& parities) {
  if (parities.masks.empty()) {
    return invalid_input("coloured addressing: at least one mask is needed");
  }
  if (!parities.pivots.empty() && parities.pivots.size() != parities.masks.size()) {
    return invalid_input("coloured addressing: {} bits are inserted for {} masks",
                         parities.pivots.size(), parities.masks.size());
  }
  for (std::size_t i = 0; i < parities.masks.size(); ++i) {
    const std::uint64_t mask = parities.masks[i];
    const std::uint32_t pivot = parities.pivot(i);
    if ((mask & 15) != 0 || mask >> 32 != 0 || pivot > 31 || (mask >> pivot & 1) == 0 ||
        (i != 0 && pivot <= parities.pivot(i - 1))) {
      return invalid_input(
          "coloured addressing: mask {:#x} does not fit; masks use bits 4-31 and come with the "
          "bits that are inserted, their lowest ones if nothing else is said, ascending",
          mask);
    }
    for (std::size_t other = 0; other < parities.masks.size(); ++other) {
      if (other == i || (parities.masks[other] >> pivot & 1) == 0) continue;
      return invalid_input(
          "coloured addressing: the inserted bit of mask {:#x} is also in mask {:#x}", mask,
          parities.masks[other]);
    }
  }
  const std::uint64_t colors = std::uint64_t{1} << parities.masks.size();
  if (parities.color >= colors) {
    return invalid_input(
        "coloured addressing: there is no colour {}; the colours of {} mask{} are 0 to {}",
        parities.color, parities.masks.size(), parities.masks.size() == 1 ? "" : "s", colors - 1);
  }
  return {};
}

std::string parity_arithmetic(const Parities& addressing) {
  const auto& masks = addressing.masks;
  std::string out = "\tcvt.u32.u64 \t%demarc_l, %demarc_a;\n\tmov.b32 \t%demarc_o, %demarc_l;\n";
  int pivot = 0;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const int last = pivot;
    pivot = static_cast<int>(addressing.pivot(i));
    if (i != 0 && pivot != last + 1) {
      out += fmt::format("\tshl.b32 \t%demarc_x, %demarc_l, {};\n", i) +
             keep_below(last + 1, "%demarc_x");
    }
    const auto others = static_cast<std::uint32_t>(masks[i]) & ~(1U << pivot);
    out += parity_text(linear_bits(others, addressing), pivot, addressing.color >> i & 1U) +
           keep_below(pivot, "%demarc_x");
  }
  out += fmt::format("\tshl.b64 \t%demarc_h, %demarc_a, {};\n", masks.size());
  return out + "\tmov.b64 \t{%demarc_x, %demarc_u}, %demarc_h;\n" +
         keep_below(pivot + 1, "%demarc_x") + "\tmov.b64 \t%demarc_a, {%demarc_o, %demarc_u};\n";
}

std::uint64_t granule_of(std::span<const std::uint64_t> masks) {
  std::uint64_t any = 0;
  for (const std::uint64_t mask : masks) any |= mask;
  return any & -any;
}

ArenaByte position_under(const Parities& parities, LinearByte linear) {
  std::uint64_t v = with_zeros(parities, linear);
  // A pivot occurs in its own mask only, so every bit can be settled by itself.
  std::uint64_t pivots = 0;
  for (std::size_t i = 0; i < parities.masks.size(); ++i) {
    const std::uint64_t bit = parity(v, parities.masks[i]) ^ ((parities.color >> i) & 1U);
    pivots |= bit << parities.pivot(i);
  }
  return ArenaByte(v | pivots);
}

std::pair<ArenaByte, ArenaByte> bounds_under(const Parities& parities, LinearByte linear) {
  const std::uint64_t least = with_zeros(parities, linear);
  std::uint64_t ones = 0;
  for (std::size_t i = 0; i < parities.masks.size(); ++i) {
    ones |= std::uint64_t{1} << parities.pivot(i);
  }
  return {ArenaByte(least), ArenaByte(least | ones)};
}

}  // namespace demarc::color
