// Where the lines of an application lie: numbers that do not mix (demarc/base/strong.hpp), and the
// ways from one kind to another.
#pragma once

#include <bit>
#include <cstdint>

#include "demarc/base/rounding.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim::translation {

inline constexpr std::uint32_t line_bytes = 64;
inline constexpr std::uint32_t sector_bytes = 32;

using GpuIndex = Index<struct GpuIndexTag>;
// A line of the application's own space, which starts at address 0.
using LineNumber = Index<struct LineNumberTag>;
using PageNumber = Index<struct PageNumberTag>;

// The address must be below 256 GiB, where line numbers end; else std::logic_error.
[[nodiscard, gnu::always_inline]] constexpr LineNumber line_of(Address address) {
  return LineNumber(address.raw() / line_bytes);
}

// Lines to pages.
class PageSize {
 public:
  // `bytes` is a power of two, a line at least.
  explicit constexpr PageSize(std::uint32_t bytes)
      : shift_(static_cast<std::uint32_t>(std::countr_zero(bytes / line_bytes))) {}

  [[nodiscard, gnu::always_inline]] PageNumber page_of(LineNumber line) const {
    return PageNumber(line.raw() >> shift_);
  }
  // Line `within` of a page.
  [[nodiscard, gnu::always_inline]] LineNumber line_in(PageNumber page,
                                                       std::uint32_t within) const {
    return LineNumber((page.raw() << shift_) | within);
  }
  // The place of a line in its page, the first is 0.
  [[nodiscard, gnu::always_inline]] std::uint32_t within(LineNumber line) const {
    return line.raw() & (lines() - 1);
  }
  [[nodiscard, gnu::always_inline]] std::uint32_t lines() const { return 1U << shift_; }
  // The number of pages that so many bytes take.
  [[nodiscard]] std::uint64_t pages_of(std::uint64_t bytes) const {
    const std::uint64_t page_bytes = std::uint64_t{lines()} * line_bytes;
    return ceil_div(bytes, page_bytes);
  }

 private:
  std::uint32_t shift_;
};

}  // namespace demarc::sim::translation
