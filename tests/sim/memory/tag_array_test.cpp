// The tags of caches against the plainest way to keep them: a list of lines in order of use.
#include "memory/tag_array.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace demarc::sim::memory::test {
namespace {

// One set, the least recently used line first.
struct PlainSet {
  struct Line {
    LineNumber line;
    bool pending;
  };
  std::vector<Line> by_use;

  [[nodiscard]] auto find(LineNumber line) {
    return std::find_if(by_use.begin(), by_use.end(),
                        [&](const Line& at) { return at.line == line; });
  }
  // The line to be replaced; no_line: an empty way is taken, or every line is pending.
  [[nodiscard]] LineNumber oldest(std::size_t ways) const {
    if (by_use.size() < ways) return L2Tags::no_line;
    const auto at =
        std::find_if(by_use.begin(), by_use.end(), [](const Line& line) { return !line.pending; });
    return at == by_use.end() ? L2Tags::no_line : at->line;
  }
};

constexpr std::uint32_t sets_a_cache = 2;

// One access of `line`: used where it is found, else installed. True: both do the same.
bool access(L2Tags& tags, PlainSet& plain, std::uint32_t set_number, std::uint32_t ways,
            LineNumber line, bool pending) {
  const SliceIndex cache(set_number / sets_a_cache);
  const L2Tags::Set set(set_number);
  L2Tags::Way index = tags.find(set, line);
  const auto known = plain.find(line);
  if ((index != none) != (known != plain.by_use.end())) return false;
  if (index != none) {
    tags.use(cache, index);
    plain.by_use.erase(known);
  } else {
    index = tags.victim(set);
    const LineNumber expected = plain.oldest(ways);
    if (index == none) return expected == L2Tags::no_line && plain.by_use.size() == ways;
    if (tags.line(index) != expected) return false;
    if (expected != L2Tags::no_line) plain.by_use.erase(plain.find(expected));
    tags.install(cache, index, line);
  }
  plain.by_use.push_back({line, pending});
  tags.state(index) &= ~L2Tags::pending_bits;
  if (pending) tags.state(index) |= 1U << L2Tags::pending_shift;
  return true;
}

RC_GTEST_PROP(TagArray, replaces_the_line_least_recently_used_that_waits_for_nothing, ()) {
  const auto ways = *rc::gen::inRange<std::uint32_t>(1, 23);
  constexpr std::uint32_t caches = 3;
  L2Tags tags;
  tags.resize(caches, sets_a_cache, ways);
  std::vector<PlainSet> plain(std::size_t{caches} * sets_a_cache);
  for (int i = 0; i < 300; ++i) {
    const auto set = *rc::gen::inRange<std::uint32_t>(0, caches * sets_a_cache);
    const LineNumber line(*rc::gen::inRange<std::uint32_t>(0, 2 * ways));
    const bool pending = *rc::gen::inRange(0, 4) == 0;
    RC_ASSERT(access(tags, plain[set], set, ways, line, pending));
  }
}

TEST(TagArray, order_of_use_outlives_the_numbers_it_is_kept_in) {
  constexpr std::uint32_t ways = 4;
  L2Tags tags;
  tags.resize(2, 2, ways);
  std::vector<PlainSet> plain(4);
  std::uint32_t drawn = 1;
  for (int i = 0; i < 400000; ++i) {
    drawn = drawn * 1664525U + 1013904223U;
    const std::uint32_t set = (drawn >> 30U) & 3U;
    ASSERT_TRUE(access(tags, plain[set], set, ways, LineNumber((drawn >> 20U) % 7),
                       (drawn >> 10U) % 5 == 0))
        << "access " << i;
  }
}

TEST(TagArray, a_new_line_starts_with_no_sector) {
  L2Tags tags;
  tags.resize(1, 1, 1);
  const L2Tags::Set set(0);
  const L2Tags::Way way(0);
  tags.install(SliceIndex(0), tags.victim(set), LineNumber(7));
  tags.state(way) |= 15U | (3U << L2Tags::dirty_shift) | L2Tags::waited_bit;
  EXPECT_EQ(tags.valid(way), 15U);
  EXPECT_EQ(tags.dirty(way), 3U);
  tags.install(SliceIndex(0), tags.victim(set), LineNumber(8));
  EXPECT_EQ(tags.find(set, LineNumber(7)), L2Tags::Way(none));
  EXPECT_EQ(tags.find(set, LineNumber(8)), way);
  EXPECT_EQ(tags.state(way) & 0xffffU, 0U);
}

}  // namespace
}  // namespace demarc::sim::memory::test
