// A set of TPCs in logical order. Work MAY run on a TPC that is a member. The hardware's masks mean
// the opposite; this stays inside room `driver`.
#pragma once

#include <array>
#include <bit>
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

  constexpr TpcSet() = default;
  constexpr TpcSet(std::initializer_list<std::uint32_t> members) {
    for (const std::uint32_t tpc : members) insert(tpc);
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
    for (std::uint32_t tpc = 0; tpc < count; ++tpc) set.insert(tpc);
    return set;
  }
  static TpcSet of(const std::vector<std::uint32_t>& members);

  // TPCs from `capacity` on are not members and cannot become members.
  constexpr void insert(std::uint32_t tpc) {
    if (tpc < capacity) words_[tpc / 64] |= std::uint64_t{1} << (tpc % 64);
  }
  constexpr void erase(std::uint32_t tpc) {
    if (tpc < capacity) words_[tpc / 64] &= ~(std::uint64_t{1} << (tpc % 64));
  }
  [[nodiscard]] constexpr bool contains(std::uint32_t tpc) const {
    return tpc < capacity && ((words_[tpc / 64] >> (tpc % 64)) & 1U) != 0;
  }
  [[nodiscard]] constexpr std::uint32_t size() const {
    return static_cast<std::uint32_t>(std::popcount(words_[0]) + std::popcount(words_[1]));
  }
  [[nodiscard]] constexpr bool empty() const { return (words_[0] | words_[1]) == 0; }
  [[nodiscard]] constexpr const std::array<std::uint64_t, 2>& words() const { return words_; }
  [[nodiscard]] std::vector<std::uint32_t> members() const;  // ascending

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
// The %smid of the set's SMs, ascending.
[[nodiscard]] std::vector<std::uint32_t> sms_of(const gpu::Topology& topology, const TpcSet& tpcs);
// All TPCs of the listed GPCs ("--gpcs 0-2"). An unknown GPC is an error.
[[nodiscard]] Result<TpcSet> tpcs_of_gpcs(const gpu::Topology& topology, std::string_view list,
                                          std::string_view what);

}  // namespace demarc::gpu
