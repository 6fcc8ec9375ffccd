// Division that rounds up. No sum overflows on the way.
#pragma once

#include <concepts>

namespace demarc {

// The smallest number of pieces of `piece`, which is not 0, that hold `count`.
template <std::unsigned_integral Count, std::unsigned_integral Piece>
[[nodiscard]] constexpr auto ceil_div(Count count, Piece piece) {
  return count / piece + (count % piece == 0 ? 0U : 1U);
}

// The smallest multiple of `piece`, which is not 0, that is not below `count`. It must fit into the
// type: what is beyond the last multiple becomes 0.
template <std::unsigned_integral Count, std::unsigned_integral Piece>
[[nodiscard]] constexpr auto round_up(Count count, Piece piece) {
  return ceil_div(count, piece) * piece;
}

}  // namespace demarc
