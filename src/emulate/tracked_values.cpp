// Finds which bits of a result depend on bits that were not written.
#include "tracked_values.hpp"

#include <array>
#include <bit>

namespace demarc::emulate {

namespace {

struct TrackedValue {
  std::uint64_t bits = 0;
  std::uint64_t unwritten = 0;
  [[nodiscard]] std::uint64_t least() const { return bits & ~unwritten; }
  [[nodiscard]] std::uint64_t most() const { return bits | unwritten; }
};

constexpr std::uint64_t every_bit = ~std::uint64_t{0};

// A bit depends on unwritten ones if it would be another for other ones.
std::uint64_t table_bits(const std::array<TrackedValue, 3>& values, std::uint8_t truth) {
  std::uint64_t can_be[2] = {0, 0};
  for (unsigned row = 0; row < 8; ++row) {
    std::uint64_t possible = every_bit;
    for (unsigned i = 0; i < 3; ++i) {
      const bool one = ((row >> (2 - i)) & 1U) != 0;
      possible &= values[i].unwritten | (one ? values[i].bits : ~values[i].bits);
    }
    can_be[(truth >> row) & 1U] |= possible;
  }
  return can_be[0] & can_be[1];
}

std::uint64_t from_lowest(std::uint64_t bits) {
  return bits == 0 ? 0 : every_bit << static_cast<unsigned>(std::countr_zero(bits));
}

}  // namespace

unsigned source_lane(const Warp& w, const TrackedInstruction& in,
                     std::span<const TrackedOperand> read, unsigned lane) {
  const bool shuffles =
      in.rule >= TrackRule::shuffle_up && in.rule <= TrackRule::shuffle_index && read.size() > 2;
  if (!shuffles) return lane;
  const auto by = static_cast<unsigned>(bits_of(w.frame, read[1], lane)) & 31U;
  const auto segment = static_cast<unsigned>(bits_of(w.frame, read[2], lane));
  const unsigned mask = (segment >> 8) & 31U;
  const unsigned clamp = segment & 31U;
  const unsigned most = (lane & mask) | (clamp & ~mask);
  unsigned from = lane;
  bool inside = false;
  switch (in.rule) {
    case TrackRule::shuffle_up:
      from = lane - by;
      inside = static_cast<int>(from) >= static_cast<int>(most);
      break;
    case TrackRule::shuffle_down:
      from = lane + by;
      inside = from <= most;
      break;
    case TrackRule::shuffle_butterfly:
      from = lane ^ by;
      inside = from <= most;
      break;
    default:
      from = (lane & mask) | (by & ~mask);
      inside = from <= most;
      break;
  }
  return inside && from < warp_size ? from : lane;
}

std::uint64_t result_bits(const Warp& w, const std::byte* shadow, const TrackedInstruction& in,
                          std::span<const TrackedOperand> read, unsigned lane) {
  std::array<TrackedValue, 3> values;
  for (std::size_t i = 0; i < read.size() && i < values.size(); ++i) {
    if (read[i].slot == TrackedOperand::unknown && in.rule != TrackRule::shuffle_index)
      return every_bit;
    values[i] = {bits_of(w.frame, read[i], lane), bits_of(shadow, read[i], lane)};
    if (read[i].negated) values[i].bits ^= 1U;
  }
  const auto& [a, b, c] = values;
  switch (in.rule) {
    case TrackRule::bitwise:
      return table_bits(values, in.truth);
    case TrackRule::sum:
      return a.unwritten | b.unwritten | ((a.least() + b.least()) ^ (a.most() + b.most()));
    case TrackRule::difference:
      return a.unwritten | b.unwritten | ((a.least() - b.most()) ^ (a.most() - b.least()));
    case TrackRule::product:
      return from_lowest(a.unwritten | b.unwritten | c.unwritten);
    case TrackRule::equality: {
      const std::uint64_t differ = (a.bits ^ b.bits) & ~(a.unwritten | b.unwritten);
      return differ != 0 ? 0 : every_bit;
    }
    case TrackRule::shuffle_up:
    case TrackRule::shuffle_down:
    case TrackRule::shuffle_butterfly:
    case TrackRule::shuffle_index:
      return a.unwritten;
    default:
      return every_bit;
  }
}

}  // namespace demarc::emulate
