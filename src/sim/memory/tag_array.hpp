// Tags of all caches of one level. A set is a row of words: the lines of its ways, then what is
// known of each, so that a search touches as few lines of the host's cache as can be.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "prefetch.hpp"
#include "slots.hpp"

namespace demarc::sim::memory {

inline constexpr std::uint32_t max_ways = 1U << 15U;  // per set

template <class Cache>
struct SetsOf;
template <class Cache>
struct WaysOf;

// Cache: what has one each, the index of an SM or of a slice.
template <class Cache>
class TagArray {
 public:
  using Set = Index<SetsOf<Cache>>;  // over all caches
  using Way = Index<WaysOf<Cache>>;  // a line is named by its set and its way

  // A way: bits 0-3 valid sectors, 4-7 dirty ones, 8-11 those asked for and not yet there, 12: in
  // an L1, a list of waiters exists; bits 16-31 the time of the last use.
  static constexpr std::uint32_t dirty_shift = 4;
  static constexpr std::uint32_t pending_shift = 8;
  static constexpr std::uint32_t pending_bits = 15U << pending_shift;
  static constexpr std::uint32_t waited_bit = 1U << 12U;

  void resize(std::uint32_t caches, std::uint32_t sets, std::uint32_t ways);

  [[nodiscard]] Way index(Set set, std::uint32_t way) const {
    return Way((set.raw() << way_bits_) | way);
  }
  [[nodiscard]] Set set_of(Way way) const { return Set(way.raw() >> way_bits_); }
  [[nodiscard]] std::size_t indices() const { return std::size_t{sets_all_} << way_bits_; }

  static constexpr LineNumber no_line{None::raw};  // line of a way that is empty

  // Where `wanted` is, or none.
  [[nodiscard]] Way find(Set set, LineNumber wanted) const {
    const std::uint32_t* const row = words_.data() + std::size_t{set.raw()} * stride_;
    Four found{};
    for (std::uint32_t way = 0; way < padded_ways_; way += 4) {
      Four lines;
      std::memcpy(&lines, row + way, sizeof(lines));
      found |= static_cast<Four>(lines == wanted.raw()) & (Four{1, 2, 3, 4} + way);
    }
    const std::uint32_t place = found[0] | found[1] | found[2] | found[3];  // one at most is not 0
    return place == 0 ? Way(none) : index(set, place - 1);
  }
  // An empty way, else the least recently used one with nothing under way; none when all wait.
  [[nodiscard]] Way victim(Set set) const;
  [[nodiscard]] LineNumber line(Way index) const { return LineNumber(words_[place(index)]); }
  [[nodiscard]] std::uint32_t& state(Way index) { return words_[place(index) + padded_ways_]; }
  [[nodiscard]] std::uint32_t valid(Way index) { return state(index) & 15U; }
  [[nodiscard]] std::uint32_t dirty(Way index) { return (state(index) >> dirty_shift) & 15U; }
  [[nodiscard]] std::uint32_t pending(Way index) { return (state(index) >> pending_shift) & 15U; }
  void install(Cache cache, Way index, LineNumber new_line) {
    words_[place(index)] = new_line.raw();
    state(index) = 0;
    use(cache, index);
  }
  void use(Cache cache, Way index) {
    if (clocks_[cache] == last_time) renumber(cache);
    std::uint32_t& of_way = state(index);
    of_way = (of_way & 0xffffU) | (++clocks_[cache] << 16U);
  }
  // The line is the next that goes.
  void let_go(Way index) { state(index) &= 0xffffU; }
  // Nothing of the cache is there any more, but for lines of which something is under way.
  void forget(Cache cache);
  // Asks the host for the set, or for what is known of a line.
  void prefetch_set(Set set) const {
    const std::uint32_t* const row = words_.data() + std::size_t{set.raw()} * stride_;
    for (std::uint32_t word = 0; word < stride_; word += host_line / sizeof(std::uint32_t)) {
      prefetch(row + word);
    }
  }
  void prefetch_state(Way index) const { prefetch(words_.data() + place(index) + padded_ways_); }

 private:
  // Four words that GCC and Clang compare at once.
  using Four = std::uint32_t __attribute__((vector_size(16)));
  static constexpr std::uint32_t last_time = 0xfffeU;

  [[nodiscard]] std::size_t place(Way index) const {
    return std::size_t{index.raw() >> way_bits_} * stride_ +
           (index.raw() & ((1U << way_bits_) - 1));
  }
  // Times of use start again from the number of ways; their order in each set is kept.
  void renumber(Cache cache);

  std::uint32_t ways_ = 0;
  std::uint32_t padded_ways_ = 0;  // to a multiple of four; of those added the line is none
  std::uint32_t way_bits_ = 0;
  std::uint32_t sets_ = 0;  // of one cache
  std::uint32_t sets_all_ = 0;
  std::uint32_t stride_ = 0;
  LargeArray<std::uint32_t> words_;
  PerIndex<Cache, std::uint32_t> clocks_;
};

extern template class TagArray<SmIndex>;
extern template class TagArray<SliceIndex>;
using L1Tags = TagArray<SmIndex>;
using L2Tags = TagArray<SliceIndex>;

}  // namespace demarc::sim::memory
