// A TLB against the plainest way to keep one: a list of keys in order of use.
#include "memory/tlb.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace demarc::sim::memory::test {
namespace {

// The least recently used key first.
struct PlainTlb {
  std::size_t entries;
  std::vector<std::uint64_t> by_use;

  bool touch(std::uint64_t key) {
    const auto known = std::find(by_use.begin(), by_use.end(), key);
    if (known == by_use.end()) return false;
    std::rotate(known, known + 1, by_use.end());
    return true;
  }
  void enter(std::uint64_t key) {
    if (touch(key)) return;
    if (by_use.size() == entries) by_use.erase(by_use.begin());
    by_use.push_back(key);
  }
};

RC_GTEST_PROP(Tlb, keeps_the_entries_that_were_used_last, ()) {
  const auto entries = *rc::gen::inRange<std::uint32_t>(1, 12);
  Tlb tlb(entries);
  PlainTlb plain{entries, {}};
  for (int i = 0; i < 300; ++i) {
    const auto key = *rc::gen::inRange<std::uint64_t>(0, 2 * entries);
    if (*rc::gen::inRange(0, 2) == 0) {
      RC_ASSERT(tlb.touch(TlbKey(key)) == plain.touch(key));
    } else {
      tlb.enter(TlbKey(key));
      plain.enter(key);
    }
  }
  // In the order of the list, so that no look-up puts another entry first.
  for (const std::uint64_t key : std::vector<std::uint64_t>(plain.by_use)) {
    RC_ASSERT(tlb.touch(TlbKey(key)));
  }
}

// Each new key takes the place of the one that was used longest ago, whatever was in between.
TEST(Tlb, replaces_its_entries_in_the_order_of_their_use) {
  Tlb tlb(3);
  for (const std::uint64_t key : {1U, 2U, 3U}) tlb.enter(TlbKey(key));
  EXPECT_TRUE(tlb.touch(TlbKey(1)));
  EXPECT_TRUE(tlb.touch(TlbKey(2)));
  tlb.enter(TlbKey(4));
  EXPECT_FALSE(tlb.touch(TlbKey(3)));
  EXPECT_TRUE(tlb.touch(TlbKey(1)));
  tlb.enter(TlbKey(5));
  EXPECT_FALSE(tlb.touch(TlbKey(2)));
  tlb.enter(TlbKey(6));
  EXPECT_FALSE(tlb.touch(TlbKey(4)));
  for (const std::uint64_t key : {1U, 5U, 6U}) EXPECT_TRUE(tlb.touch(TlbKey(key))) << key;
}

}  // namespace
}  // namespace demarc::sim::memory::test
