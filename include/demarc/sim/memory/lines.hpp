// Lines of 128 bytes and their four sectors: numbers that do not mix (demarc/base/strong.hpp), and
// the ways from one kind to another.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "demarc/sim/units.hpp"

namespace demarc::sim::memory {

inline constexpr std::uint32_t line_shift = 7;
inline constexpr std::uint32_t line_bytes = 1U << line_shift;
inline constexpr std::uint32_t sector_bytes = 32;

// An address in the card's memory. The Translation of a client turns its Addresses into these.
using PhysicalAddress = Location<struct PhysicalAddressTag>;
// A line of the card's memory, below 512 GiB, where line numbers end.
using LineNumber = Index<struct LineNumberTag>;

inline constexpr std::uint64_t max_bytes = std::uint64_t{1} << (32U + line_shift);

// Beyond the last line line_of() throws std::logic_error. find_line(), for addresses from outside,
// returns std::nullopt.
[[nodiscard, gnu::always_inline]] constexpr LineNumber line_of(PhysicalAddress address) {
  return LineNumber(address.raw() >> line_shift);
}
[[nodiscard]] constexpr std::optional<LineNumber> find_line(PhysicalAddress address) {
  if (address.raw() >= max_bytes) return std::nullopt;
  return line_of(address);
}
[[nodiscard, gnu::always_inline]] constexpr PhysicalAddress address_of(LineNumber line) {
  return PhysicalAddress(line.raw<std::uint64_t>() << line_shift);
}

// The mask of the sector that holds an address.
template <class AnyAddress>
[[nodiscard, gnu::always_inline]] constexpr std::uint32_t sector_of(AnyAddress address) {
  return 1U << (address.raw() % line_bytes / sector_bytes);
}

// A line of a client's memory and the mask of its sectors that an access touches, in one word: the
// line's address, and the mask in bits 0-3.
class LineEntry {
 public:
  constexpr LineEntry() = default;
  // The line that holds `address`.
  [[gnu::always_inline]] constexpr LineEntry(Address address, std::uint32_t sectors)
      : word_((address.raw() & ~std::uint64_t{line_bytes - 1}) | (sectors & all_sectors)) {}
  // std::nullopt: the word is not such a entry.
  [[nodiscard]] static constexpr std::optional<LineEntry> from_word(std::uint64_t word) {
    const LineEntry entry(Address(word), static_cast<std::uint32_t>(word & all_sectors));
    if (entry.sectors() == 0 || entry.word_ != word) return std::nullopt;
    return entry;
  }
  // Takes nothing but what word() gave.
  [[nodiscard, gnu::always_inline]] static constexpr LineEntry again(std::uint64_t word) {
    LineEntry entry;
    entry.word_ = word;
    return entry;
  }

  [[nodiscard, gnu::always_inline]] constexpr Address line() const {
    return Address(word_ & ~std::uint64_t{line_bytes - 1});
  }
  [[nodiscard, gnu::always_inline]] constexpr std::uint32_t sectors() const {
    return static_cast<std::uint32_t>(word_ & all_sectors);
  }
  [[nodiscard, gnu::always_inline]] constexpr std::uint64_t word() const { return word_; }
  [[gnu::always_inline]] constexpr void add(std::uint32_t sectors) {
    word_ |= sectors & all_sectors;
  }

  friend constexpr auto operator<=>(const LineEntry&, const LineEntry&) = default;

 private:
  static constexpr std::uint32_t all_sectors = 15;
  std::uint64_t word_ = 0;
};

}  // namespace demarc::sim::memory
