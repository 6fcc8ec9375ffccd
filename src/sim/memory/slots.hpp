// Names of what an engine holds in flat arrays, and how they are kept small.
#pragma once

#include <cstdint>
#include <type_traits>

#include "demarc/sim/memory/simulation.hpp"

namespace demarc::sim::memory {

using WarpIndex = Index<struct WarpTag>;
using BlockIndex = Index<struct BlockTag>;
using PacketIndex = Index<struct PacketTag>;
using FetchIndex = Index<struct FetchTag>;
using RegisterIndex = Index<struct RegisterTag>;          // miss registers of all slices
using WaiterIndex = Index<struct WaiterTag>;              // of L1 lines
using BankIndex = Index<struct BankTag>;                  // of all channels
using RequestIndex = Index<struct RequestTag>;            // of timed()
using WalkIndex = Index<struct WalkTag>;                  // page walks
using WalkerWaiterIndex = Index<struct WalkerWaiterTag>;  // accesses that wait for them

// Names nothing, of any kind.
struct None {
  static constexpr std::uint32_t raw = ~std::uint32_t{0};
  template <class Tag, Arithmetic arithmetic>
  [[gnu::always_inline]] constexpr operator Strong<Tag, std::uint32_t, arithmetic>() const {
    return Strong<Tag, std::uint32_t, arithmetic>(raw);
  }
};
inline constexpr None none;

// An index in fewer bits; one that does not fit is a mistake of the program.
template <class Kind, std::unsigned_integral Small>
class Packed {
 public:
  constexpr Packed() = default;
  [[gnu::always_inline]] constexpr Packed(Kind kind) : small_(kind.template raw<Small>()) {}
  [[gnu::always_inline]] constexpr operator Kind() const { return Kind(small_); }

 private:
  Small small_ = 0;
};

// One of several kinds; which, the holder knows.
template <class... Kinds>
class OneOf {
  template <class Kind>
  static constexpr bool holds = (std::is_same_v<Kind, Kinds> || ...);

 public:
  constexpr OneOf() = default;
  template <class Kind>
  requires holds<Kind>
  [[gnu::always_inline]] constexpr OneOf(Kind kind) : raw_(kind.raw()) {}
  [[gnu::always_inline]] constexpr OneOf(None) {}
  template <class Kind>
  requires holds<Kind>
  [[nodiscard, gnu::always_inline]] constexpr Kind as() const { return Kind(raw_); }

 private:
  std::uint32_t raw_ = None::raw;
};

}  // namespace demarc::sim::memory
