// SMs sorted by use, for machines with one small scheduling resource: sets of SM numbers, one per
// level of use, as bit sets.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "demarc/sim/dispatch/tb_config.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim {

class UsageLevels {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  // Whether levels are worth it, and (use + request) / capacity still tells any two of them apart
  // in single precision.
  [[nodiscard]] static bool apply_to(const SmSpec& spec) {
    constexpr std::uint64_t max_bits = std::uint64_t{1} << 22;
    return spec.n_sched == 1 && spec.max[0] <= 4096 &&
           (std::uint64_t{spec.max[0]} + 1) * spec.n_sms <= max_bits;
  }

  // Nothing in use.
  explicit UsageLevels(const SmSpec& spec)
      : words_((spec.n_sms + 63) / 64),
        levels_(spec.max[0] + 1),
        sets_(std::size_t{levels_} * words_),
        filled_((levels_ + 63) / 64) {
    for (std::uint32_t sm = 0; sm < spec.n_sms; ++sm) {
      sets_[sm / 64] |= std::uint64_t{1} << (sm % 64);
    }
    filled_[0] = 1;
  }

  // The use of one SM changed. Requests that wrap around can leave a use above the capacity for a
  // while; such an SM is in no set.
  void move(SmIndex index, std::uint32_t from, std::uint32_t to) {
    const std::uint32_t sm = index.raw();
    const std::uint64_t bit = std::uint64_t{1} << (sm % 64);
    if (from < levels_) {
      word(from, sm / 64) &= ~bit;
    } else {
      --outside_;
    }
    if (to < levels_) {
      word(to, sm / 64) |= bit;
      mark(to);
    } else {
      ++outside_;
    }
  }
  // The use of each SM first_sm + i, i in the bits of `mask`, falls from used[i] by `amount`. The
  // 16 SMs of a mask lie in one word of a set.
  void lower(SmIndex first_sm, std::uint32_t mask, const std::uint32_t* used,
             std::uint32_t amount) {
    std::uint64_t* const sets = sets_.data() + first_sm.raw() / 64;
    const std::uint32_t shift = first_sm.raw() % 64;
    const std::uint32_t words = words_;
    std::uint64_t low_marks = 0;
    for (; mask != 0; mask &= mask - 1) {
      const auto i = static_cast<std::uint32_t>(std::countr_zero(mask));
      const std::uint32_t from = used[i];
      const std::uint32_t to = from - amount;
      if (from >= levels_ || to >= levels_) [[unlikely]] {
        move(first_sm + i, from, to);
        continue;
      }
      const std::uint64_t bit = std::uint64_t{1} << (shift + i);
      sets[std::size_t{from} * words] &= ~bit;
      sets[std::size_t{to} * words] |= bit;
      if (to < 64) {
        low_marks |= std::uint64_t{1} << to;
      } else {
        mark(to);
      }
    }
    filled_[0] |= low_marks;
  }
  // The sets hold every SM.
  [[nodiscard]] bool complete() const { return outside_ == 0; }

  // The lowest level from `level` on that holds an SM, or the highest up to `level`; `none` when
  // there is none.
  [[nodiscard]] std::uint32_t lowest_from(std::uint32_t level) {
    std::uint32_t w = level / 64;
    for (std::uint64_t mask = ~std::uint64_t{0} << (level % 64); w < filled_.size(); ++w) {
      for (std::uint64_t bits = filled_[w] & mask; bits != 0; bits &= bits - 1) {
        const auto found = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
        if (holds(found)) return found;
      }
      mask = ~std::uint64_t{0};
    }
    return none;
  }
  [[nodiscard]] std::uint32_t highest_to(std::uint32_t level) {
    std::uint64_t mask = ~std::uint64_t{0} >> (63 - level % 64);
    for (std::uint32_t w = level / 64 + 1; w-- > 0;) {
      for (std::uint64_t bits = filled_[w] & mask; bits != 0;) {
        const auto bit = static_cast<std::uint32_t>(63 - std::countl_zero(bits));
        if (holds(w * 64 + bit)) return w * 64 + bit;
        bits &= ~(std::uint64_t{1} << bit);
      }
      mask = ~std::uint64_t{0};
    }
    return none;
  }
  // The lowest SM of a level that holds one.
  [[nodiscard]] SmIndex first(std::uint32_t level) const {
    std::uint32_t w = 0;
    while (sets_[level * words_ + w] == 0) ++w;
    return SmIndex(w * 64 +
                   static_cast<std::uint32_t>(std::countr_zero(sets_[level * words_ + w])));
  }
  // Moves up to `most` SMs, the lowest first, from one level to another and calls take(sm) for
  // each.
  template <class Take>
  std::uint32_t move_lowest(std::uint32_t from, std::uint32_t to, std::uint64_t most, Take take) {
    std::uint32_t moved = 0;
    for (std::uint32_t w = 0; w < words_ && moved < most; ++w) {
      const std::uint64_t all = word(from, w);
      std::uint64_t left = all;
      for (; left != 0 && moved < most; left &= left - 1, ++moved) {
        take(SmIndex(w * 64 + static_cast<std::uint32_t>(std::countr_zero(left))));
      }
      word(from, w) = left;
      word(to, w) |= all & ~left;
    }
    if (moved > 0) mark(to);
    return moved;
  }

 private:
  std::uint64_t& word(std::uint32_t level, std::uint32_t w) {
    return sets_[std::size_t{level} * words_ + w];
  }
  void mark(std::uint32_t level) { filled_[level / 64] |= std::uint64_t{1} << (level % 64); }
  // Whether a level marked as filled still holds an SM; if not, the mark goes.
  bool holds(std::uint32_t level) {
    std::uint64_t any = 0;
    for (std::uint32_t w = 0; w < words_; ++w) any |= word(level, w);
    if (any == 0) filled_[level / 64] &= ~(std::uint64_t{1} << (level % 64));
    return any != 0;
  }

  std::uint32_t words_, levels_;
  std::uint32_t outside_ = 0;
  std::vector<std::uint64_t> sets_;    // [level][word]
  std::vector<std::uint64_t> filled_;  // levels that may hold an SM
};

}  // namespace demarc::sim
