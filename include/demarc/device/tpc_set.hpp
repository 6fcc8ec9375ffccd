// A set of TPCs in logical order. Work MAY run on a TPC that is a member. The hardware's masks mean
// the opposite; this stays inside room `driver`.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/device/topology.hpp"

namespace demarc::gpu {

class TpcSet {
 public:
  static constexpr std::uint32_t capacity = 128;  // the width of the hardware's mask

  // What a list in braces holds: a TPC, or the number of one as source code spells it.
  struct Listed {
    constexpr Listed(TpcIndex listed) : tpc(listed) {}
    consteval Listed(std::uint32_t number) : tpc(number) {}
    TpcIndex tpc;
  };
  // Walks over the members, ascending.
  class Iterator {
   public:
    using value_type = TpcIndex;
    using difference_type = std::ptrdiff_t;

    constexpr Iterator() = default;
    constexpr explicit Iterator(const std::array<std::uint64_t, 2>& words) : left_(words) {}
    constexpr TpcIndex operator*() const {
      const int skipped = std::countr_zero(left_[0]);
      return TpcIndex(skipped < 64 ? skipped : 64 + std::countr_zero(left_[1]));
    }
    constexpr Iterator& operator++() {
      std::uint64_t& word = left_[left_[0] == 0 ? 1 : 0];
      word &= word - 1;
      return *this;
    }
    constexpr Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend constexpr bool operator==(const Iterator&, const Iterator&) = default;

   private:
    std::array<std::uint64_t, 2> left_{};
  };
  using const_iterator = Iterator;
  using value_type = TpcIndex;

  constexpr TpcSet() = default;
  constexpr TpcSet(std::initializer_list<Listed> members) {
    for (const Listed member : members) insert(member.tpc);
  }
  // Bit i of words[i / 64] is TPC i.
  static constexpr TpcSet from_words(std::uint64_t low, std::uint64_t high) {
    TpcSet set;
    set.words_ = {low, high};
    return set;
  }
  // {0, ..., count - 1}
  static constexpr TpcSet first(std::uint32_t count) {
    TpcSet set;
    for (TpcIndex tpc; tpc < TpcIndex(count); ++tpc) set.insert(tpc);
    return set;
  }
  static TpcSet of(const std::vector<TpcIndex>& members);

  // TPCs from `capacity` on are not members and cannot become members.
  constexpr void insert(TpcIndex tpc) {
    if (tpc.raw() < capacity) words_[tpc.raw() / 64] |= bit(tpc);
  }
  constexpr void erase(TpcIndex tpc) {
    if (tpc.raw() < capacity) words_[tpc.raw() / 64] &= ~bit(tpc);
  }
  [[nodiscard]] constexpr bool contains(TpcIndex tpc) const {
    return tpc.raw() < capacity && (words_[tpc.raw() / 64] & bit(tpc)) != 0;
  }
  [[nodiscard]] constexpr std::uint32_t size() const {
    return static_cast<std::uint32_t>(std::popcount(words_[0]) + std::popcount(words_[1]));
  }
  [[nodiscard]] constexpr bool empty() const { return (words_[0] | words_[1]) == 0; }
  [[nodiscard]] constexpr const std::array<std::uint64_t, 2>& words() const { return words_; }
  [[nodiscard]] constexpr Iterator begin() const { return Iterator(words_); }
  [[nodiscard]] constexpr Iterator end() const { return {}; }

  [[nodiscard]] constexpr bool is_subset_of(const TpcSet& other) const {
    return (*this - other).empty();
  }
  friend constexpr TpcSet operator|(const TpcSet& a, const TpcSet& b) {
    return from_words(a.words_[0] | b.words_[0], a.words_[1] | b.words_[1]);
  }
  friend constexpr TpcSet operator&(const TpcSet& a, const TpcSet& b) {
    return from_words(a.words_[0] & b.words_[0], a.words_[1] & b.words_[1]);
  }
  friend constexpr TpcSet operator-(const TpcSet& a, const TpcSet& b) {
    return from_words(a.words_[0] & ~b.words_[0], a.words_[1] & ~b.words_[1]);
  }
  friend constexpr bool operator==(const TpcSet&, const TpcSet&) = default;

 private:
  static constexpr std::uint64_t bit(TpcIndex tpc) { return std::uint64_t{1} << (tpc.raw() % 64); }

  std::array<std::uint64_t, 2> words_{};
};

// "0-15,20": ranges joined by commas, "none" when empty. parse_tpc_set() reads it back.
[[nodiscard]] std::string to_string(const TpcSet& set);

// `count` is the number of TPCs of the GPU; `what` names the option in the error. An empty list is
// an error.
[[nodiscard]] Result<TpcSet> parse_tpc_set(std::string_view text, std::uint32_t count,
                                           std::string_view what);

[[nodiscard]] TpcSet all_tpcs(const gpu::Topology& topology);
[[nodiscard]] std::uint32_t sm_count(const gpu::Topology& topology, const TpcSet& tpcs);
// Ascending.
[[nodiscard]] std::vector<SmIndex> sms_of(const gpu::Topology& topology, const TpcSet& tpcs);
// All TPCs of the listed GPCs ("--gpcs 0-2"). An unknown GPC is an error.
[[nodiscard]] Result<TpcSet> tpcs_of_gpcs(const gpu::Topology& topology, std::string_view list,
                                          std::string_view what);

}  // namespace demarc::gpu
