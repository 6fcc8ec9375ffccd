// Finds where the chunks of a slice go when a pattern is XORed into their index.
#include "chunk_moves.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "demarc/base/gf2.hpp"

namespace demarc::probe {
namespace {

constexpr double clear_share = 0.9;         // share of a slice's chunks that go to the places named
constexpr double least_single_share = 0.7;  // share of the page, in slices that go to one place
constexpr double least_pair_share = 0.5;    // and to two; twins go to four

// Among the chunks of each slice, how many go to each other slice under a pattern.
class Destinations {
 public:
  Destinations(const Labels& slice_of, std::uint32_t slices)
      : slice_of_(slice_of),
        slices_(slices),
        sizes_(slices),
        count_(std::size_t{slices} * slices),
        tally_(slices) {
    for (const std::uint32_t slice : slice_of) ++sizes_[slice];
    for (std::uint32_t i = 0; i < slice_of.size(); ++i) {
      const std::uint32_t slice = slice_of[i];
      if (slice % std::max(1U, slices / asked_slices) != 0) continue;
      auto& asked = asked_[slice];
      if (asked.size() < asked_chunks) asked.push_back(i);
    }
  }

  // Quick: whether the chunks of half of a few slices may go to one or two places.
  [[nodiscard]] bool may_be_few(std::uint32_t pattern) {
    std::size_t few = 0;
    const std::uint32_t* slice_of = slice_of_.data();
    std::uint32_t* tally = tally_.data();
    for (const auto& [slice, chunks] : asked_) {
      for (const std::uint32_t chunk : chunks) ++tally[slice_of[chunk ^ pattern]];
      std::uint32_t first = 0;
      std::uint32_t second = 0;
      for (const std::uint32_t chunk : chunks) {
        const std::uint32_t n = std::exchange(tally[slice_of[chunk ^ pattern]], 0U);
        second = std::max(second, std::min(n, first));
        first = std::max(n, first);
      }
      few += 4 * (first + second) >= 3 * chunks.size() ? 1U : 0U;
    }
    return 2 * few >= asked_.size();
  }

  void count(std::uint32_t pattern) {
    std::fill(count_.begin(), count_.end(), 0);
    const std::uint32_t* slice_of = slice_of_.data();
    std::uint32_t* count = count_.data();
    const std::size_t chunks = slice_of_.size();
    for (std::size_t i = 0; i < chunks; ++i) {
      ++count[std::size_t{slice_of[i]} * slices_ + slice_of[i ^ pattern]];
    }
  }
  // Share of the page in slices whose chunks go to one place, and to two.
  struct Shares {
    double one = 0;
    double two = 0;
  };
  [[nodiscard]] Shares shares() const {
    Shares shares;
    for (std::uint32_t slice = 0; slice < slices_; ++slice) {
      const double size = sizes_[slice];
      const int places = places_of(slice);
      if (places == 1) shares.one += size;
      if (places == 2) shares.two += size;
    }
    const auto page = static_cast<double>(slice_of_.size());
    return {shares.one / page, shares.two / page};
  }
  // The slices whose chunks go to two places.
  [[nodiscard]] std::vector<std::uint32_t> divided() const {
    std::vector<std::uint32_t> divided;
    for (std::uint32_t slice = 0; slice < slices_; ++slice) {
      if (places_of(slice) == 2) divided.push_back(slice);
    }
    return divided;
  }
  // Where most chunks of a slice go.
  [[nodiscard]] std::uint32_t main_destination(std::uint32_t slice) const {
    const auto begin = count_.begin() + static_cast<std::ptrdiff_t>(std::size_t{slice} * slices_);
    return static_cast<std::uint32_t>(std::max_element(begin, begin + slices_) - begin);
  }

 private:
  // To how many places the chunks of a slice go: 1, 2, or 0 where they go to more.
  [[nodiscard]] int places_of(std::uint32_t slice) const {
    const auto [first, second] = max_frequent(slice);
    const double size = sizes_[slice];
    if (first >= clear_share * size) return 1;
    return first + second >= clear_share * size && second >= 0.2 * size ? 2 : 0;
  }
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> max_frequent(std::uint32_t slice) const {
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    const std::uint32_t* count = count_.data() + std::size_t{slice} * slices_;
    for (std::uint32_t to = 0; to < slices_; ++to) {
      const std::uint32_t n = count[to];
      if (n <= second) continue;
      second = std::min(first, n);
      first = std::max(first, n);
    }
    return {first, second};
  }

  static constexpr std::uint32_t asked_slices = 8;
  static constexpr std::size_t asked_chunks = 24;

  const Labels& slice_of_;
  std::uint32_t slices_;
  std::vector<std::uint32_t> sizes_, count_;
  std::vector<std::uint32_t> tally_;                           // zeros, but while counting
  std::map<std::uint32_t, std::vector<std::uint32_t>> asked_;  // some chunks of a few slices
};

// Walsh-Hadamard transform in place: entry m becomes the sum over i of (-1)^parity(i & m) v[i].
void transform(std::vector<std::int32_t>& v) {
  const std::size_t size = v.size();
  for (std::size_t step = 1; step < size; step *= 2) {
    for (std::size_t i = 0; i < size; i += 2 * step) {
      std::int32_t* low = v.data() + i;
      std::int32_t* high = low + step;
      for (std::size_t j = 0; j < step; ++j) {
        const std::int32_t a = low[j];
        const std::int32_t b = high[j];
        low[j] = a + b;
        high[j] = a - b;
      }
    }
  }
}

// The mask whose parity best tells, slice by slice, which of two places a chunk goes to. Twins go
// to four: their sides are no parity, and they are not asked.
std::uint32_t deciding_mask(const Labels& slice_of, const Destinations& destinations,
                            std::uint32_t pattern) {
  constexpr std::size_t slices_asked = 16;
  std::vector<std::int64_t> votes(slice_of.size());
  const std::vector<std::uint32_t> divided = destinations.divided();
  const std::size_t step = std::max<std::size_t>(1, divided.size() / slices_asked);
  for (std::size_t k = 0; k < divided.size(); k += step) {
    const std::uint32_t slice = divided[k];
    const std::uint32_t main = destinations.main_destination(slice);
    std::vector<std::int32_t> side(slice_of.size());
    const std::uint32_t* labels = slice_of.data();
    for (std::size_t i = 0; i < side.size(); ++i) {
      if (labels[i] == slice) side[i] = labels[i ^ pattern] == main ? 1 : -1;
    }
    transform(side);
    std::int64_t* vote = votes.data();
    const std::int32_t* sum = side.data();
    for (std::size_t m = 0; m < votes.size(); ++m) vote[m] += std::abs(sum[m]);
  }
  return static_cast<std::uint32_t>(std::max_element(votes.begin() + 1, votes.end()) -
                                    votes.begin());
}

std::uint32_t reduced(std::uint32_t mask, std::span<const std::uint32_t> constants) {
  std::uint32_t least = mask;
  for (std::uint32_t choice = 0; choice < 1U << constants.size(); ++choice) {
    std::uint32_t sum = mask;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      if ((choice >> i & 1U) != 0) sum ^= constants[i];
    }
    least = std::min(least, sum);
  }
  return least;
}

std::uint32_t constants_flipped(std::uint32_t pattern, std::span<const std::uint32_t> constants) {
  std::uint32_t flipped = 0;
  for (std::size_t i = 0; i < constants.size(); ++i) flipped |= parity(pattern, constants[i]) << i;
  return flipped;
}

}  // namespace

std::uint32_t label_count(const Labels& labels) {
  return labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end()) + 1;
}

ChunkMoves find_moves(const Labels& slice_of, std::span<const std::uint32_t> constants) {
  const std::uint32_t slices = label_count(slice_of);
  Destinations destinations(slice_of, slices);
  ChunkMoves moves;
  moves.half_flips.assign(constants.size(), 0);
  for (std::uint32_t pattern = 1; pattern < slice_of.size(); ++pattern) {
    const std::uint32_t flipped = constants_flipped(pattern, constants);
    // Counting costs most: only what could still tell something is counted.
    std::uint32_t* flip = nullptr;
    if (std::has_single_bit(flipped)) {
      flip = &moves.half_flips[static_cast<std::size_t>(std::countr_zero(flipped))];
    }
    const bool known =
        std::any_of(moves.digits.begin(), moves.digits.end(),
                    [&](const Digit& digit) { return parity(pattern, digit.mask) != 0; });
    const bool may_flip = flip != nullptr && *flip == 0;
    const bool may_be_digit = flipped == 0 && !known;
    if (!(may_flip || may_be_digit) || !destinations.may_be_few(pattern)) continue;
    destinations.count(pattern);
    const auto shares = destinations.shares();
    if (may_flip && shares.one >= least_single_share) *flip = pattern;
    if (!may_be_digit || shares.two < least_pair_share) continue;
    const std::uint32_t mask = reduced(deciding_mask(slice_of, destinations, pattern), constants);
    if (parity(pattern, mask) != 0) moves.digits.push_back({pattern, mask});
  }
  for (Digit& digit : moves.digits) {
    for (std::size_t i = 0; i < constants.size(); ++i) {
      if (parity(moves.half_flips[i], digit.mask) != 0) digit.mask ^= constants[i];
    }
  }
  return moves;
}

}  // namespace demarc::probe
