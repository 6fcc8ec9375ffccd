// Memory that several processes of a tenant have: it comes back when the last of them leaves it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/serve/ledger.hpp"

namespace demarc::serve {
namespace {

using color::LinearByte;
using lease::extent_step;
using testing::HasSubstr;
using State = Holding::State;

class SharedMemory : public testing::Test {
 protected:
  void SetUp() override {
    const auto terms = [](const std::string& name, gpu::TpcIndex tpc, std::uint64_t colors) {
      return Terms{name, {tpc}, {colors, 8}, {}, 8 * extent_step, 8 * extent_step, 8 * extent_step};
    };
    ASSERT_TRUE(ledger.replace({terms("a", gpu::TpcIndex(0), 1), terms("b", gpu::TpcIndex(1), 2)}));
    lender = process_of("a");
    borrower = process_of("a");
    ASSERT_EQ(ledger.take(lender, 2 * extent_step).value().first, at);
    ASSERT_EQ(ledger.lend(lender, at, 0, "0f").value(), "0f");
  }
  void TearDown() override {
    const auto sound = prove(ledger.book());
    EXPECT_TRUE(sound) << sound.error().message;
  }
  ProcessId process_of(const std::string& tenant) {
    return ledger.attach(ledger.open(tenant).value()).value();
  }
  [[nodiscard]] const Holding& shared() const { return ledger.tenant("a")->holdings.at(at); }
  template <class T>
  static std::string refusal(const Result<T>& result) {
    return result ? "taken" : result.error().message;
  }

  static constexpr const char* none =
      "no process of tenant '{}' shares memory under this key: the memory was freed, or it belongs "
      "to another tenant or another server";
  const LinearByte at{};
  Ledger ledger;
  ProcessId lender = 0;
  ProcessId borrower = 0;
};

TEST_F(SharedMemory, is_that_of_the_lender_and_counts_once) {
  EXPECT_EQ(ledger.borrow(borrower, "0f").value(), (lease::Extent{at, 2 * extent_step}));
  EXPECT_EQ(shared().owners.size(), 2U);
  EXPECT_EQ(ledger.tenant("a")->holdings.size(), 1U);
  EXPECT_TRUE(ledger.take(lender, 6 * extent_step)) << "all that is left";
  EXPECT_EQ(ledger.lend(lender, at, 0, "1e").value(), "0f") << "the key that others have already";
  EXPECT_EQ(ledger.lend(borrower, at, 0, "1e").value(), "0f") << "a borrower lends it on";
  EXPECT_EQ(ledger.borrow(process_of("a"), "0f").value().first, at);
  EXPECT_EQ(shared().owners.size(), 3U);
}

TEST_F(SharedMemory, is_refused_to_those_who_may_not_have_it) {
  EXPECT_EQ(refusal(ledger.lend(borrower, at, 0, "1e")), "no bytes of this process begin at 0");
  EXPECT_EQ(refusal(ledger.lend(lender, at + extent_step, 0, "1e")),
            "no bytes of this process begin at 2097152");
  EXPECT_EQ(refusal(ledger.give(borrower, at)), "no bytes of this process begin at 0");
  ASSERT_TRUE(ledger.borrow(lender, "0f")) << "it has the bytes already";
  EXPECT_EQ(shared().owners.size(), 1U);
  ASSERT_TRUE(ledger.borrow(borrower, "0f"));
  ASSERT_TRUE(ledger.borrow(borrower, "0f")) << "again";
  const ProcessId other = process_of("b");
  EXPECT_EQ(refusal(ledger.borrow(other, "0f")), fmt::format(none, "b"));
  EXPECT_EQ(refusal(ledger.borrow(borrower, "0e")), fmt::format(none, "a"));
  ASSERT_TRUE(ledger.take(lender, extent_step));
  EXPECT_EQ(refusal(ledger.borrow(borrower, "")), fmt::format(none, "a"))
      << "what was not lent has no key";
  const ProcessId late = process_of("a");
  ASSERT_TRUE(ledger.revoke("a"));
  const auto revoked = ledger.borrow(late, "0f");
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().message, "tenant 'a' was revoked");
  EXPECT_EQ(revoked.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(shared().owners.size(), 2U) << "refusals add no owner";
}

// A process shows that the server goes on.
TEST_F(SharedMemory, is_nothing_to_a_process_that_has_none) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        int taken = 0;
        for (const LinearByte first : {at, at + extent_step}) {
          if (ledger.give(borrower, first)) ++taken;
          if (ledger.lend(borrower, first, 0, "1e")) ++taken;
          if (ledger.withdraw(borrower, first, 0)) ++taken;
          if (ledger.show(borrower, first)) ++taken;
        }
        std::_Exit(taken);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Ledgers, without_tenants_have_none) {
  EXPECT_EQ(Ledger().tenant("a"), nullptr);
  EXPECT_FALSE(Ledger().busy("a"));
  EXPECT_EQ(Ledger().open("a").error().message, "there is no tenant 'a'; the tenants are: none");
}

TEST_F(SharedMemory, stays_until_its_last_owner_leaves_it_in_whatever_order_and_way) {
  for (const bool lender_first : {true, false}) {
    for (const bool first_dies : {true, false}) {
      for (const bool last_dies : {true, false}) {
        const ProcessId one = process_of("a");
        const ProcessId two = process_of("a");
        const LinearByte place = ledger.take(one, extent_step).value().first;
        const auto& holdings = ledger.tenant("a")->holdings;
        ASSERT_EQ(ledger.lend(one, place, 0, "key").value(), "key");
        ASSERT_TRUE(ledger.borrow(two, "key"));
        const auto leaves = [&](ProcessId process, bool dies) {
          if (dies) {
            ledger.detach(process);
          } else {
            EXPECT_TRUE(ledger.give(process, place).has_value());
          }
        };
        leaves(lender_first ? one : two, first_dies);
        EXPECT_EQ(holdings.at(place).state, State::given);
        EXPECT_EQ(holdings.at(place).owners.size(), 1U);
        EXPECT_FALSE(ledger.next_unclean(UINT64_MAX));
        const ProcessId three = process_of("a");
        EXPECT_TRUE(ledger.borrow(three, "key").has_value()) << "one owner is left";
        ASSERT_TRUE(ledger.give(three, place));
        leaves(lender_first ? two : one, last_dies);
        EXPECT_EQ(holdings.at(place).state, State::unclean);
        EXPECT_EQ(refusal(ledger.borrow(three, "key")), fmt::format(none, "a"));
        ledger.cleaned(ledger.next_unclean(UINT64_MAX).value());
        EXPECT_FALSE(holdings.contains(place));
        EXPECT_EQ(holdings.size(), 1U) << "that of the fixture";
      }
    }
  }
}

// An allocation is freed in bytes that its process keeps.
TEST_F(SharedMemory, has_a_key_for_each_allocation_until_it_is_withdrawn) {
  EXPECT_EQ(ledger.lend(lender, at, 512, "1e").value(), "1e");
  EXPECT_EQ(ledger.lend(lender, at, 0, "2d").value(), "0f");
  EXPECT_EQ(ledger.lend(lender, at, 2 * extent_step - 1, "3c").value(), "3c");
  EXPECT_EQ(refusal(ledger.lend(lender, at, 2 * extent_step, "4b")),
            "the 4194304 bytes at 0 have no byte 4194304");
  ASSERT_TRUE(ledger.borrow(borrower, "1e"));
  const ProcessId late = process_of("a");
  EXPECT_EQ(refusal(ledger.withdraw(late, at, 512)), "no bytes of this process begin at 0");
  EXPECT_EQ(refusal(ledger.withdraw(lender, at, 513)),
            "nothing at byte 513 of the bytes at 0 is lent");
  ASSERT_TRUE(ledger.withdraw(lender, at, 512));
  EXPECT_EQ(refusal(ledger.withdraw(lender, at, 512)),
            "nothing at byte 512 of the bytes at 0 is lent");
  EXPECT_EQ(refusal(ledger.borrow(late, "1e")), fmt::format(none, "a"));
  EXPECT_EQ(shared().owners.size(), 2U) << "the process that has it keeps it";
  EXPECT_EQ(ledger.borrow(late, "0f").value().first, at);
  EXPECT_EQ(ledger.lend(lender, at, 512, "5a").value(), "5a") << "the next allocation there";
}

TEST_F(SharedMemory, has_so_many_keys_and_no_more) {
  constexpr std::uint64_t most = 4096;
  const LinearByte second = ledger.take(lender, extent_step).value().first;
  for (std::uint64_t i = 1; i < most; ++i) {
    ASSERT_TRUE(ledger.lend(lender, i % 2 == 0 ? at : second, i, "x"));
  }
  const auto refused = ledger.lend(lender, at, 5001, "x");
  EXPECT_EQ(
      refusal(refused),
      "tenant 'a' already shares 4096 allocations between its processes, the largest possible "
      "number");
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(ledger.lend(lender, at, 0, "x").value(), "0f") << "that has one";
  const ProcessId other = process_of("b");
  EXPECT_TRUE(ledger.lend(other, ledger.take(other, 1).value().first, 0, "x"));
  ASSERT_TRUE(ledger.withdraw(lender, at, 0));
  EXPECT_TRUE(ledger.lend(lender, at, 5001, "x"));
}

TEST_F(SharedMemory, is_used_by_so_many_and_no_more) {
  std::vector<std::string> keys{"0f"};
  for (int i = 0; i < 6; ++i) {
    const LinearByte first = ledger.take(lender, extent_step).value().first;
    keys.push_back(ledger.lend(lender, first, 0, fmt::format("a{}", i)).value());
  }
  std::uint64_t left = 4096;
  ProcessId last = 0;
  while (left > 0) {
    last = process_of("a");
    for (std::size_t i = 0; i < keys.size() && left > 0; ++i, --left) {
      ASSERT_TRUE(ledger.borrow(last, keys[i])) << left;
    }
  }
  const auto refused = ledger.borrow(borrower, "0f");
  EXPECT_EQ(refusal(refused),
            "processes of tenant 'a' already use 4096 ranges of each other, the largest possible "
            "number");
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_TRUE(ledger.borrow(last, "0f")) << "that has it";
  const ProcessId other = process_of("b");
  ASSERT_TRUE(ledger.lend(other, ledger.take(other, 1).value().first, 0, "b0"));
  EXPECT_TRUE(ledger.borrow(process_of("b"), "b0")) << "each tenant has its own number";
  ASSERT_TRUE(ledger.give(last, at));
  EXPECT_TRUE(ledger.borrow(borrower, "0f"));
}

TEST_F(SharedMemory, that_was_given_anew_is_not_reached_by_an_old_key) {
  ASSERT_TRUE(ledger.give(lender, at));
  ledger.cleaned(ledger.next_unclean(UINT64_MAX).value());
  ASSERT_EQ(ledger.take(lender, 2 * extent_step).value().first, at);
  EXPECT_EQ(refusal(ledger.borrow(borrower, "0f")), fmt::format(none, "a"));
  EXPECT_EQ(ledger.lend(lender, at, 0, "1e").value(), "1e");
}

TEST_F(SharedMemory, that_two_processes_show_takes_mappings_of_both) {
  ASSERT_TRUE(ledger.borrow(borrower, "0f"));
  const auto shown = [&] { return shown_bytes(*ledger.tenant("a")); };
  ASSERT_TRUE(ledger.show(lender, at));
  EXPECT_EQ(shown(), 2 * extent_step);
  ASSERT_TRUE(ledger.show(borrower, at));
  EXPECT_EQ(shown(), 4 * extent_step);
  ASSERT_TRUE(ledger.show(borrower, at));
  EXPECT_EQ(shown(), 4 * extent_step) << "again";
  ASSERT_TRUE(ledger.give(lender, at));
  EXPECT_EQ(shown(), 2 * extent_step);
}

}  // namespace
}  // namespace demarc::serve
