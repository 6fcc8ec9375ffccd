// Makes the numbers and tables by which device code finds a byte of a run of remainders.
#include <algorithm>
#include <optional>

#include "demarc/base/rounding.hpp"
#include "demarc/color/remainder_coloring.hpp"

namespace demarc::color {
namespace {

constexpr std::uint64_t max_chunks = std::uint64_t{1} << 30U;  // per arena
constexpr std::uint32_t entries = 256;                         // per table of patterns

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

// The least number of rounds, of `modulus` numbers each, after which a page begins `first` numbers
// before a round does: then rounds that are counted from that page on begin with the colour.
std::optional<std::uint64_t> rounds_before(std::uint32_t modulus, std::uint32_t first,
                                           std::uint64_t page_numbers) {
  for (std::uint64_t rounds = 0; rounds < page_numbers; ++rounds) {
    if ((rounds * modulus + page_numbers - first) % page_numbers == 0) return rounds;
  }
  return std::nullopt;
}

// Numbers of the window below `numbers`.
std::uint64_t numbers_of(RemainderColoring::Window window, std::uint32_t modulus,
                         std::uint64_t numbers) {
  if (numbers <= window.first) return 0;
  const std::uint64_t from_first = numbers - window.first;
  return from_first / modulus * window.count +
         std::min<std::uint64_t>(from_first % modulus, window.count);
}

// The least shift with which v * reciprocal >> 32 >> shift is v / divisor up to `end`: as long as
// `end` times what was rounded up stays below 2^(32 + shift).
void set_reciprocal(RemainderSteps& steps, std::uint32_t divisor) {
  for (;; ++steps.reciprocal_shift) {
    const std::uint64_t one = std::uint64_t{1} << (32U + steps.reciprocal_shift);
    const std::uint64_t reciprocal = ceil_div(one, divisor);
    steps.reciprocal = static_cast<std::uint32_t>(reciprocal);
    if (steps.end * (reciprocal * divisor - one) < one) return;
  }
}

}  // namespace

Result<RemainderSteps> RemainderColoring::steps(std::uint32_t color) const {
  const std::uint64_t chunks = pages() * (hash_.page_bytes >> hash_.chunk_shift);
  if (chunks > max_chunks) {
    return missing_capability("an arena of {} chunks of {} bytes: device code knows {} at most",
                              chunks, std::uint64_t{1} << hash_.chunk_shift, max_chunks);
  }
  for (const std::uint32_t pattern : patterns_.of_number) {
    if (pattern >= entries) {
      return missing_capability(
          "digits that change bits {:#x} of a chunk's place: device code knows the lowest 8",
          pattern);
    }
  }
  const Window window = windows_.at(color);
  const std::uint64_t page_numbers = std::uint64_t{1} << hash_.number_bits();
  const auto rounds = rounds_before(hash_.modulus, window.first, page_numbers);
  if (!rounds) {
    return missing_capability("remainders modulo {}: device code knows odd numbers", hash_.modulus);
  }
  const std::uint64_t pages_before = (*rounds * hash_.modulus - window.first) / page_numbers;
  const auto free_bits = static_cast<std::uint32_t>(hash_.free_bits.size());
  const std::uint64_t own = numbers_of(window, hash_.modulus, pages() * page_numbers);
  RemainderSteps steps;
  steps.chunk_shift = hash_.chunk_shift;
  steps.page_shift = hash_.page_shift();
  steps.pattern_bits = hash_.block_shift - hash_.chunk_shift;
  steps.begin = static_cast<std::uint32_t>((*rounds * window.count) << free_bits);
  steps.end = static_cast<std::uint32_t>((*rounds * window.count + own) << free_bits);
  steps.skipped = (hash_.modulus - window.count) << free_bits;
  set_reciprocal(steps, window.count << free_bits);
  steps.first_page = static_cast<std::uint32_t>(pages_before);
  steps.pages_at = remainder_table_of_pages + hash_.modulus - steps.first_page;
  return steps;
}

// What the bits of a chunk's number in its page bring to the lowest bits of its place.
std::uint32_t RemainderColoring::pattern_of_chunk(std::uint32_t chunk) const {
  const auto free_bits = static_cast<std::uint32_t>(hash_.free_bits.size());
  std::uint32_t pattern = 0;
  for (std::uint32_t bit = 0; bit < hash_.page_shift(); ++bit) {
    if (((chunk >> bit) & 1U) == 0) continue;
    pattern ^= bit < free_bits ? patterns_.of_free_bit[bit] : patterns_.of_number[bit - free_bits];
  }
  return pattern;
}

std::vector<std::byte> RemainderColoring::table() const {
  std::vector<std::byte> bytes;
  for (const std::uint32_t step : {1U, entries}) {
    for (std::uint32_t entry = 0; entry < entries; ++entry) {
      append(bytes, static_cast<std::uint16_t>(pattern_of_chunk(entry * step)));
    }
  }
  bytes.resize(bytes.size() + hash_.modulus);
  for (const std::uint16_t constant : pages_) append(bytes, static_cast<std::uint8_t>(constant));
  append(bytes, std::uint8_t{0});
  return bytes;
}

}  // namespace demarc::color
