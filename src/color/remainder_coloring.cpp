// Computes where the bytes of a colour lie if colours are runs of remainders.
#include "demarc/color/remainder_coloring.hpp"

#include <bit>

#include "demarc/base/gf2.hpp"

namespace demarc::color {
namespace {

std::uint64_t bits_between(std::uint32_t from, std::uint32_t to) {
  return (std::uint64_t{1} << to) - (std::uint64_t{1} << from);
}

}  // namespace

std::uint32_t RemainderHash::number(std::uint64_t offset, std::uint32_t constant) const {
  auto number =
      static_cast<std::uint32_t>((offset & (page_bytes - 1)) >> block_shift << digits.size());
  for (std::size_t j = 0; j < digits.size(); ++j) number |= parity(offset, digits[j]) << j;
  return number ^ constant;
}

Result<RemainderHash> remainder_hash(const gpu::ModuloStage& stage, std::uint64_t half,
                                     std::uint64_t page_bytes, std::uint64_t chunk_bytes) {
  RemainderHash hash;
  hash.modulus = stage.modulus;
  hash.page_bytes = page_bytes;
  hash.chunk_shift = static_cast<std::uint32_t>(std::countr_zero(chunk_bytes));
  hash.block_shift = static_cast<std::uint32_t>(std::countr_zero(page_bytes));
  hash.digits = stage.number.rows;
  hash.half = half;
  while (!hash.digits.empty() && hash.digits.back() == std::uint64_t{1} << (hash.block_shift - 1)) {
    hash.digits.pop_back();
    --hash.block_shift;
  }
  std::vector<std::uint64_t> rows;
  for (const std::uint64_t digit : hash.digits) {
    rows.push_back(digit & bits_between(hash.chunk_shift, hash.block_shift));
  }
  // The highest that do, so that digits change the lowest bits (RemainderSteps).
  for (std::uint32_t bit = hash.block_shift; bit-- > hash.chunk_shift;) {
    rows.push_back(std::uint64_t{1} << bit);
    if (gf2_rank(rows) == rows.size()) {
      hash.free_bits.insert(hash.free_bits.begin(), rows.back());
    } else {
      rows.pop_back();
    }
  }
  DEMARC_CHECK(remainder_patterns(hash));
  return hash;
}

std::uint32_t RemainderHash::number_bits() const {
  return static_cast<std::uint32_t>(digits.size()) +
         static_cast<std::uint32_t>(std::countr_zero(page_bytes)) - block_shift;
}

RemainderHash h200_remainders() {
  RemainderHash hash;
  hash.modulus = 47;
  hash.page_bytes = std::uint64_t{2} << 20U;
  hash.chunk_shift = 8;
  hash.block_shift = 17;
  hash.digits = {0x192800, 0xf4000, 0x1da400, 0x151100, 0xf2400, 0x64800};
  hash.half = 0xab000;
  hash.free_bits = {0x200, 0x1000, 0x10000};
  return hash;
}

namespace {

// For the digits of a number.
std::uint32_t pattern_of(const RemainderPatterns& patterns, const RemainderHash& hash,
                         std::uint32_t number) {
  std::uint32_t pattern = 0;
  for (std::size_t j = 0; j < hash.digits.size(); ++j) {
    if (((number >> j) & 1U) != 0) pattern ^= patterns.of_number[j];
  }
  return pattern;
}

}  // namespace

Result<RemainderPatterns> remainder_patterns(const RemainderHash& hash) {
  const std::uint64_t low = bits_between(hash.chunk_shift, hash.block_shift);
  std::vector<std::uint64_t> rows;
  for (const std::uint64_t digit : hash.digits) rows.push_back(digit & low);
  rows.insert(rows.end(), hash.free_bits.begin(), hash.free_bits.end());
  if (rows.size() != hash.block_shift - hash.chunk_shift || gf2_rank(rows) != rows.size()) {
    return invalid_input(
        "{} digits and {} free bits were given for the {} address bits from {} on; they must "
        "determine each other",
        hash.digits.size(), hash.free_bits.size(), hash.block_shift - hash.chunk_shift,
        hash.chunk_shift);
  }
  RemainderPatterns patterns;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::uint8_t> right(rows.size(), 0);
    right[i] = 1;
    const auto pattern =
        static_cast<std::uint32_t>(gf2_solve(rows, right, low).value_or(0) >> hash.chunk_shift);
    (i < hash.digits.size() ? patterns.of_number : patterns.of_free_bit).push_back(pattern);
  }
  // Digits that a higher address bit brings along have to be taken out again.
  for (std::uint64_t bit = std::uint64_t{1} << hash.block_shift; bit < hash.page_bytes; bit *= 2) {
    patterns.of_number.push_back(pattern_of(patterns, hash, hash.number(bit, 0)));
  }
  return patterns;
}

Result<RemainderColoring> RemainderColoring::make(RemainderHash hash, std::vector<Window> windows,
                                                  std::span<const std::uint32_t> page_constants) {
  RemainderColoring made;
  DEMARC_TRY(made.patterns_, remainder_patterns(hash));
  for (const std::uint32_t constant : page_constants) {
    made.pages_.push_back(static_cast<std::uint16_t>(pattern_of(made.patterns_, hash, constant)));
  }
  made.hash_ = std::move(hash);
  return made.with_windows(std::move(windows));
}

Result<RemainderColoring> RemainderColoring::with_windows(std::vector<Window> windows) const {
  const std::uint32_t modulus = hash_.modulus;
  std::vector<bool> taken(modulus, false);
  for (const Window& window : windows) {
    if (window.count == 0 || window.count > modulus || window.first >= modulus) {
      return invalid_input(
          "a colour of {} remainders from {} on is not possible: there are {} remainders",
          window.count, window.first, modulus);
    }
    for (std::uint32_t i = 0; i < window.count; ++i) {
      const std::uint32_t remainder = (window.first + i) % modulus;
      if (taken[remainder]) return invalid_input("remainder {} is in two colours", remainder);
      taken[remainder] = true;
    }
  }
  RemainderColoring made = *this;
  made.windows_ = std::move(windows);
  return made;
}

std::uint64_t RemainderColoring::color_bytes(std::uint32_t color) const {
  // Numbers of whole rounds of the modulus, after the one that a window may begin in.
  const std::uint64_t numbers = std::uint64_t{pages_.size()} << hash_.number_bits();
  const std::uint64_t rounds = numbers / hash_.modulus;
  return rounds == 0 ? 0 : (rounds - 1) * windows_.at(color).count * hash_.unit_bytes();
}

ArenaByte RemainderColoring::position(LinearByte byte, std::uint32_t color) const {
  const std::uint64_t linear = byte.raw();
  const Window window = windows_.at(color);
  std::uint64_t n = linear / hash_.unit_bytes();
  n += n / window.count * (hash_.modulus - window.count) + window.first;
  const std::uint64_t block = n >> hash_.digits.size();
  std::uint32_t low = pages_.at(n >> hash_.number_bits());
  for (std::size_t j = 0; j < patterns_.of_number.size(); ++j) {
    if (((n >> j) & 1U) != 0) low ^= patterns_.of_number[j];
  }
  for (std::size_t i = 0; i < hash_.free_bits.size(); ++i) {
    if (((linear >> (hash_.chunk_shift + i)) & 1U) != 0) low ^= patterns_.of_free_bit[i];
  }
  const std::uint64_t chunk = (std::uint64_t{1} << hash_.chunk_shift) - 1;
  return ArenaByte(block << hash_.block_shift | std::uint64_t{low} << hash_.chunk_shift |
                   (linear & chunk));
}

std::vector<bool> own_chunks(const RemainderHash& hash, RemainderColoring::Window window,
                             std::uint64_t page, std::uint32_t constant) {
  const std::uint64_t first_number = page << hash.number_bits();
  std::vector<bool> own(hash.page_bytes >> hash.chunk_shift);
  for (std::size_t chunk = 0; chunk < own.size(); ++chunk) {
    const std::uint64_t offset = std::uint64_t{chunk} << hash.chunk_shift;
    const std::uint64_t number = first_number + hash.number(offset, constant);
    own[chunk] = (number + hash.modulus - window.first) % hash.modulus < window.count;
  }
  return own;
}

}  // namespace demarc::color
