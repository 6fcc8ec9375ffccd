// Computes where the bytes of a colour lie if colours are parities of address bits.
#include "demarc/color/coloring.hpp"

#include <bit>

#include "demarc/base/gf2.hpp"
#include "demarc/color/translation.hpp"
#include "demarc/device/address_map.hpp"

namespace demarc::color {
namespace {

std::uint64_t remove_bit(std::uint64_t value, int bit) {
  const std::uint64_t low = (std::uint64_t{1} << bit) - 1;
  return (value & low) | ((value >> 1) & ~low);
}

}  // namespace

Result<Coloring> Coloring::make(std::span<const std::uint64_t> masks, std::uint64_t page_bytes) {
  constexpr std::size_t most = 8;
  if (masks.size() > most) {
    return invalid_input("colouring: {} masks; at most {} are supported", masks.size(), most);
  }
  if (page_bytes != 0 && !std::has_single_bit(page_bytes)) {
    return invalid_input("colouring: the page size must be a power of two, not {}", page_bytes);
  }
  for (const auto mask : masks) {
    if (page_bytes != 0 && mask >= page_bytes) {
      return invalid_input("colouring: mask {:#x} reaches beyond a page of {} bytes", mask,
                           page_bytes);
    }
  }
  Coloring coloring;
  coloring.masks_ = gpu::low_pivot_basis(masks);
  coloring.page_bytes_ = page_bytes;
  if (coloring.masks_.size() != masks.size()) {
    return invalid_input("colouring: the {} masks span only {} bits; each must add one",
                         masks.size(), coloring.masks_.size());
  }
  return coloring;
}

std::uint64_t Coloring::chunk_bytes() const {
  if (masks_.empty()) return page_bytes_ == 0 ? 1 : page_bytes_;
  return granule_of(masks_);
}

std::uint32_t Coloring::color(ArenaByte position, std::uint32_t page_constant) const {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < masks_.size(); ++i) value |= parity(position.raw(), masks_[i]) << i;
  return value ^ page_constant;
}

ArenaByte Coloring::position(LinearByte linear, std::uint32_t color,
                             std::uint32_t page_constant) const {
  return position_under({masks_, color ^ page_constant}, linear);
}

LinearByte Coloring::linear(ArenaByte position) const {
  std::uint64_t value = position.raw();
  for (auto mask = masks_.rbegin(); mask != masks_.rend(); ++mask) {
    value = remove_bit(value, std::countr_zero(*mask));
  }
  return LinearByte(value);
}

ArenaByte Coloring::chunk(std::uint64_t k, std::uint32_t color, std::uint32_t page_constant) const {
  return position(LinearByte(k * chunk_bytes()), color, page_constant);
}

Result<std::uint32_t> Coloring::constant_from_rows(std::span<const std::uint64_t> rows,
                                                   std::uint32_t row_constant) const {
  // Rows carry their own index in the upper half of a word of twice the width; with at most 32 rows
  // an elimination by hand is shorter than a wide matrix.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> basis;
  const auto reduce = [&](std::uint64_t& row, std::uint32_t& bit) {
    for (const auto& [pivot_row, pivot_bit] : basis) {
      if ((row & std::bit_floor(pivot_row)) != 0) {
        row ^= pivot_row;
        bit ^= pivot_bit;
      }
    }
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::uint64_t row = rows[i];
    std::uint32_t bit = (row_constant >> i) & 1U;
    reduce(row, bit);
    if (row != 0) basis.emplace_back(row, bit);
  }
  std::uint32_t constant = 0;
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    std::uint64_t rest = masks_[i];
    std::uint32_t bit = 0;
    reduce(rest, bit);
    if (rest != 0) {
      return invalid_input("colouring: mask {:#x} is not a sum of the {} known rows", masks_[i],
                           rows.size());
    }
    constant |= bit << i;
  }
  return constant;
}

}  // namespace demarc::color
