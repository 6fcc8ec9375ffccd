// A set of colours, with the number of colours into which the memory is divided.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <string>

#include "demarc/base/result.hpp"

namespace demarc::color {

// Sets of one memory may be counted differently: colour 0 of 2 is colours 0 and 1 of 4.
class ColorSet {
 public:
  static constexpr std::uint32_t max_colors = 64;

  constexpr ColorSet() = default;  // no colours of no division: the memory is not divided
  // Bit c of `members` is colour c of `of` colours. A division refuses a set that is not
  // well formed.
  constexpr ColorSet(std::uint64_t members, std::uint32_t of) : members_(members), of_(of) {}
  // `count` colours from `first` on.
  static constexpr ColorSet run(std::uint32_t first, std::uint32_t count, std::uint32_t of) {
    return {count == 0 ? 0 : ~std::uint64_t{0} >> (max_colors - count) << first, of};
  }

  [[nodiscard]] constexpr std::uint64_t members() const { return members_; }
  [[nodiscard]] constexpr std::uint32_t of() const { return of_; }
  [[nodiscard]] constexpr bool empty() const { return members_ == 0; }
  [[nodiscard]] constexpr std::uint32_t size() const {
    return static_cast<std::uint32_t>(std::popcount(members_));
  }
  [[nodiscard]] constexpr bool contains(std::uint32_t color) const {
    return color < max_colors && ((members_ >> color) & 1U) != 0;
  }
  // At least one colour, and none beyond the last.
  [[nodiscard]] constexpr bool is_well_formed() const {
    return members_ != 0 && of_ <= max_colors && (members_ & ~run(0, of_, of_).members_) == 0;
  }
  constexpr void insert(std::uint32_t color) { members_ |= std::uint64_t{1} << color; }

  // The same colours of a memory that is divided into `of`; invalid_input if they are no whole
  // number of those.
  [[nodiscard]] Result<ColorSet> counted_in(std::uint32_t of) const;
  // What both have, counted in the finer division. Sets whose divisions do not divide each other
  // have no common colours that could be named: all of this set, unless one is empty.
  [[nodiscard]] ColorSet common(const ColorSet& other) const;

  friend constexpr auto operator<=>(const ColorSet&, const ColorSet&) = default;

 private:
  std::uint64_t members_ = 0;
  std::uint32_t of_ = 0;
};

// "0,2,3"
[[nodiscard]] std::string list_of(const ColorSet& colors);
// "0,2,3 of 4"
[[nodiscard]] std::string to_string(const ColorSet& colors);

}  // namespace demarc::color
