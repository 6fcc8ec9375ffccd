// What random kernels are written with: their registers, and numbers and addresses that come about
// in many ways.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/random.hpp"

namespace demarc::emulate::colored {

// Registers: %p predicates, %r words, %a addresses; %v and %w data of 32 and 64 bits. %r2 is the
// number of the thread in its grid.
class RandomText {
 protected:
  static constexpr int narrow_values = 8;  // registers with data, of 32 bits
  static constexpr int wide_values = 4;    // and of 64

  explicit RandomText(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  template <class T, std::size_t count>
  T one_of(const std::array<T, count>& choices) {
    return choices[below(count)];
  }
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... values) {
    code_ += fmt::format(format, std::forward<T>(values)...) + ";\n";
  }
  int value() { return static_cast<int>(below(narrow_values)); }
  int wide() { return static_cast<int>(below(wide_values)); }

  // A predicate that holds in some threads.
  int predicate() {
    line("setp.{}.u32 %p{}, %v{}, {}", one_of<const char*, 3>({"lt", "gt", "ne"}), ++predicates_,
         value(), below(std::uint64_t{1} << 32U));
    return predicates_;
  }
  std::string guard() {
    if (!chance(25)) return "";
    const int p = predicate();
    return fmt::format("@{}%p{} ", chance(50) ? "!" : "", p);
  }

  // A register with a number from 0 to `most`, another in each thread.
  int index(std::int64_t most) {
    const int made = ++words_;
    switch (below(5)) {
      case 0:
        line("mov.b32 %r{}, %v{}", made, value());
        break;
      case 1:
        line("mov.b32 %r{}, %r2", made);
        break;
      case 2:
        line("mad.lo.s32 %r{}, %v{}, {}, %r2", made, value(), below(1000));
        break;
      case 3:
        line("shr.u32 %r{}, %v{}, {}", made, value(), below(24));
        break;
      default:
        line("xor.b32 %r{}, %v{}, %v{}", made, value(), value());
    }
    const auto bound = static_cast<std::uint64_t>(most) + 1;
    if (std::has_single_bit(bound) || chance(40)) {
      line("and.b32 %r{0}, %r{0}, {1}", made, std::bit_floor(bound) - 1);
    } else {
      line("rem.u32 %r{0}, %r{0}, {1}", made, bound);
    }
    return made;
  }

  // The register with from + by * scale.
  int add(int from, int by, std::int64_t scale) {
    const int made = ++addresses_;
    const int shift = std::countr_zero(static_cast<std::uint64_t>(scale));
    switch (below(8)) {
      case 0:
        line("mul.wide.u32 %a{}, %r{}, {}", made, by, scale);
        line("add.s64 %a{0}, %a{1}, %a{0}", made, from);
        break;
      case 1:
        line("mad.wide.u32 %a{}, %r{}, {}, %a{}", made, by, scale, from);
        break;
      case 2:
        line("mad.wide.s32 %a{}, %r{}, {}, %a{}", made, by, scale, from);
        break;
      case 3:
        line("cvt.u64.u32 %a{}, %r{}", made, by);
        line("mad.lo.s64 %a{0}, %a{0}, {1}, %a{2}", made, scale, from);
        break;
      case 4:
        line("cvt.s64.s32 %a{}, %r{}", made, by);
        line("mul.lo.s64 %a{0}, %a{0}, {1}", made, scale >> shift);
        line("shl.b64 %a{0}, %a{0}, {1}", made, shift);
        line("add.u64 %a{0}, %a{0}, %a{1}", made, from);
        break;
      case 5:
        line("shl.b32 %r{}, %r{}, {}", ++words_, by, shift);
        line("mad.wide.u32 %a{}, %r{}, {}, %a{}", made, words_, scale >> shift, from);
        break;
      case 6:
        line("mul.lo.u32 %r{}, %r{}, {}", ++words_, by, scale);
        line("cvt.u64.u32 %a{}, %r{}", made, words_);
        line("add.s64 %a{0}, %a{1}, %a{0}", made, from);
        break;
      default:  // by halves
        line("mul.lo.u32 %r{}, %r{}, {}", ++words_, by, scale);
        line("mov.b64 {{%r{}, %r{}}}, %a{}", words_ + 1, words_ + 2, from);
        line("add.cc.u32 %r{0}, %r{0}, %r{1}", words_ + 1, words_);
        line("addc.u32 %r{0}, %r{0}, 0", words_ + 2);
        line("mov.b64 %a{}, {{%r{}, %r{}}}", made, words_ + 1, words_ + 2);
        words_ += 2;
    }
    return made;
  }

  // The register with from - by * scale.
  int subtract(int from, int by, std::int64_t scale) {
    const int made = ++addresses_;
    switch (below(3)) {
      case 0:
        line("mul.wide.u32 %a{}, %r{}, {}", made, by, scale);
        line("sub.s64 %a{0}, %a{1}, %a{0}", made, from);
        break;
      case 1:
        line("neg.s32 %r{}, %r{}", ++words_, by);
        line("mad.wide.s32 %a{}, %r{}, {}, %a{}", made, words_, scale, from);
        break;
      default:
        line("mad.wide.s32 %a{}, %r{}, {}, %a{}", made, by, -scale, from);
    }
    return made;
  }

  // Registers, one behind the other, for so many elements of that size.
  std::string values(std::int64_t size, std::int64_t width) {
    const char name = size == 8 ? 'w' : 'v';
    const int count = size == 8 ? wide_values : narrow_values;
    const int first = static_cast<int>(below(static_cast<std::uint64_t>(count)));
    std::string list;
    for (int i = 0; i < width; ++i) {
      list += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, (first + i) % count);
    }
    return width == 1 ? list : "{" + list + "}";
  }

  Random random_;
  std::string code_;
  int addresses_ = 0;
  int words_ = 3;
  int predicates_ = 0;
};

}  // namespace demarc::emulate::colored
