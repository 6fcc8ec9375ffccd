// The ledger gives nothing twice and forgets nothing, whatever comes in whatever order.
#include "demarc/serve/ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace demarc::serve {
namespace {

using color::LinearByte;
using gpu::TpcSet;
using lease::extent_step;
using testing::HasSubstr;
using State = Holding::State;

Terms terms(const std::string& name, TpcSet tpcs, std::uint64_t colors, std::uint64_t steps,
            std::optional<std::uint32_t> domain = {}) {
  return {name, tpcs, {colors, 8}, domain, steps * extent_step, steps * extent_step};
}

template <class At>
concept CanBeGiven = requires(Ledger& ledger, At first) {
  ledger.give(ProcessId{1}, first);
};
static_assert(CanBeGiven<LinearByte> && !CanBeGiven<color::ArenaByte>);
static_assert(!CanBeGiven<std::uint64_t> && !CanBeGiven<color::DeviceAddress>);

LinearByte at_step(std::uint64_t steps) {
  return LinearByte(steps * extent_step);
}

class Tenants : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ledger.replace({terms("a", {0, 1}, 1, 8, 1), terms("b", {2}, 2, 8, 2)}));
  }
  void TearDown() override {
    const auto sound = prove(ledger.book());
    EXPECT_TRUE(sound) << sound.error().message;
  }
  ProcessId process_of(const std::string& tenant) {
    return ledger.attach(ledger.open(tenant).value()).value();
  }
  void clean_all() {
    while (const auto piece = ledger.next_unclean(UINT64_MAX)) ledger.cleaned(*piece);
  }
  [[nodiscard]] std::size_t holdings(const std::string& name) const {
    return ledger.tenant(name)->holdings.size();
  }
  static constexpr std::uint64_t step_bytes(std::uint64_t steps) { return steps * extent_step; }
  static std::string refusal(const Result<void>& result) {
    return result ? "taken" : result.error().message;
  }

  Ledger ledger;
};

TEST_F(Tenants, that_would_share_something_are_refused_and_nothing_changes) {
  const auto refused = [&](const Terms& wanted) { return refusal(ledger.set(wanted)); };
  EXPECT_EQ(refused(terms("c", {1, 5}, 4, 8)), "tenants 'a' and 'c' share the TPCs 1");
  EXPECT_EQ(refused(terms("c", {5}, 6, 8)), "tenants 'b' and 'c' share the colours 1 of 8");
  EXPECT_EQ(refused(terms("c", {5}, 4, 8, 2)),
            "tenants 'b' and 'c' share the memory synchronisation domain 2");
  EXPECT_EQ(refused(terms("c", {}, 4, 8)), "tenant 'c' has no TPCs");
  EXPECT_THAT(refused(terms("c", {5}, 0, 8)), HasSubstr("tenant 'c' has no colours"));
  EXPECT_EQ(refused({"c", {5}, {4, 4}, {}, extent_step, extent_step + 1}),
            "tenant 'c': 2097153 bytes were asked for, but its colours hold 2097152");
  EXPECT_EQ(refused({"c", {5}, {4, 4}, {}, extent_step, extent_step - 1}),
            "tenant 'c': 2097151 bytes; at least 2097152 were expected");
  EXPECT_EQ(ledger.book().tenants.size(), 2U);
  EXPECT_EQ(refused(terms("c", {5}, 4, 8, 0)),
            "tenant 'c' has the memory synchronisation domain 0, which is that of all programs "
            "without one");
  EXPECT_EQ(refused(terms("c", {5}, 4, 8, 3)), "taken");
  EXPECT_EQ(refused(terms("e", {7}, 16, 8)), "taken");
  EXPECT_EQ(refused(terms("f", {8}, 32, 8)), "taken") << "two without a domain";
  EXPECT_EQ(refusal(ledger.replace({terms("a", {0}, 1, 8), terms("a", {1}, 2, 8)})),
            "tenant 'a' is there twice");
}

TEST_F(Tenants, exchange_what_they_have_and_go_when_they_are_not_used) {
  EXPECT_TRUE(ledger.replace({terms("a", {2}, 2, 8, 2), terms("b", {0, 1}, 1, 8, 1)}));
  EXPECT_EQ(ledger.tenant("a")->terms.tpcs, (TpcSet{2}));
  EXPECT_TRUE(ledger.replace({terms("b", {0, 1}, 1, 8, 1)}));
  EXPECT_EQ(ledger.tenant("a"), nullptr);
  EXPECT_EQ(ledger.known_tenant("a").error().message, "there is no tenant 'a'; the tenants are: b");
  EXPECT_TRUE(ledger.replace({}));
  EXPECT_EQ(ledger.known_tenant("a").error().message,
            "there is no tenant 'a'; the tenants are: none");
}

TEST_F(Tenants, that_are_used_keep_what_their_processes_have) {
  const auto process = process_of("a");
  ASSERT_EQ(ledger.take(process, 3 * extent_step).value().first, LinearByte());
  EXPECT_EQ(refusal(ledger.set(terms("a", {0}, 4, 8, 1))),
            "tenant 'a' is in use: its colours stay");
  EXPECT_EQ(refusal(ledger.set(terms("a", {0}, 1, 9, 1))),
            "tenant 'a' is in use: its colours stay");
  EXPECT_EQ(refusal(ledger.set(terms("a", {0}, 1, 8, 3))),
            "tenant 'a' is in use: its memory synchronisation domain stays");
  EXPECT_EQ(refusal(ledger.replace({terms("b", {2}, 2, 8, 2)})), "tenant 'a' is in use: it stays");
  Terms other = terms("a", {5}, 1, 8, 1);
  other.bytes = 2 * extent_step;
  EXPECT_EQ(refusal(ledger.set(other)),
            "tenant 'a' uses its memory up to byte 6291456: 4194304 bytes are too few");
  other.bytes = 3 * extent_step;
  EXPECT_EQ(refusal(ledger.set(other)), "taken") << "other TPCs and fewer bytes";
  EXPECT_EQ(holdings("a"), 1U);
  EXPECT_TRUE(ledger.busy("a"));
  EXPECT_FALSE(ledger.busy("b"));
  EXPECT_FALSE(ledger.busy("c"));
}

TEST_F(Tenants, get_the_first_run_that_is_long_enough) {
  const auto process = process_of("a");
  EXPECT_EQ(ledger.take(process, 1).value(), (lease::Extent{{}, extent_step}));
  EXPECT_EQ(ledger.take(process, extent_step + 1).value(),
            (lease::Extent{at_step(1), 2 * extent_step}));
  EXPECT_EQ(ledger.take(process, extent_step).value().first, at_step(3));
  EXPECT_EQ(ledger.take(process, 4 * extent_step).value().first, at_step(4));
  EXPECT_EQ(ledger.take(process, 1).error().message,
            "1 bytes for tenant 'a': the longest free run has 0 of 16777216");
  ASSERT_TRUE(ledger.give(process, at_step(1)));
  clean_all();
  EXPECT_EQ(ledger.take(process, 3 * extent_step).error().message,
            "6291456 bytes for tenant 'a': the longest free run has 4194304 of 16777216");
  ledger.count_refusal(process);
  EXPECT_EQ(ledger.tenant("a")->refused_takes, 1U);
  EXPECT_EQ(ledger.tenant("b")->refused_takes, 0U);
  ASSERT_TRUE(ledger.give(process, at_step(3)));
  clean_all();
  EXPECT_EQ(ledger.take(process, 3 * extent_step).value().first, at_step(1))
      << "two free neighbours are one run";
  EXPECT_EQ(ledger.take(process, UINT64_MAX).error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(ledger.take(process, 0).error().kind, ErrorKind::invalid_input);
}

TEST_F(Tenants, that_are_capped_get_no_byte_beyond) {
  Terms capped = terms("a", {0, 1}, 1, 8, 1);
  capped.bytes = 2 * extent_step + 1;
  ASSERT_TRUE(ledger.set(capped));
  const auto process = process_of("a");
  EXPECT_FALSE(ledger.take(process, 2 * extent_step + 1));
  EXPECT_TRUE(ledger.take(process, 2 * extent_step));
  EXPECT_FALSE(ledger.take(process, 1));
}

TEST_F(Tenants, are_full_once_no_step_is_left) {
  Terms capped = terms("a", {0, 1}, 1, 8, 1);
  capped.bytes = 2 * extent_step + 1;
  ASSERT_TRUE(ledger.set(capped));
  const auto process = process_of("a");
  const auto full = [&] { return is_full(*ledger.tenant("a")); };
  EXPECT_FALSE(full());
  ASSERT_TRUE(ledger.take(process, extent_step));
  EXPECT_FALSE(full());
  ASSERT_TRUE(ledger.take(process, extent_step));
  EXPECT_TRUE(full()) << "one byte is left, which is not a step";
  ASSERT_TRUE(ledger.give(process, at_step(1)));
  EXPECT_FALSE(full()) << "what waits for zeros is on its way back";
  ledger.lose(ledger.next_unclean(extent_step).value());
  EXPECT_TRUE(full()) << "what is lost does not come back";
}

// The kernel module's mappings are those of all processes of a tenant together.
TEST_F(Tenants, show_no_more_than_they_may_at_a_time) {
  Terms a = terms("a", {0, 1}, 1, 8, 1);
  a.window_bytes = step_bytes(3);
  ASSERT_TRUE(ledger.set(a));
  const ProcessId first = process_of("a");
  const ProcessId second = process_of("a");
  const LinearByte of_first = ledger.take(first, step_bytes(2)).value().first;
  const LinearByte of_second = ledger.take(second, step_bytes(2)).value().first;
  const auto shown = [&] { return shown_bytes(*ledger.tenant("a")); };
  EXPECT_EQ(shown(), 0U);
  EXPECT_EQ(refusal(ledger.show(first, of_second)), "no bytes of this process begin at 4194304");
  EXPECT_EQ(refusal(ledger.show(first, at_step(7))), "no bytes of this process begin at 14680064");
  ASSERT_TRUE(ledger.show(first, of_first));
  ASSERT_TRUE(ledger.show(first, of_first)) << "again";
  EXPECT_EQ(shown(), step_bytes(2));
  const auto refused = ledger.show(second, of_second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message,
            "4194304 bytes of windows for tenant 'a': 4194304 of 6291456 are in use (windows = "
            "\"...\" in the server's configuration gives more)");
  const LinearByte one = ledger.take(second, step_bytes(1)).value().first;
  ASSERT_TRUE(ledger.show(second, one)) << "just all of them";
  EXPECT_EQ(shown(), step_bytes(3));
  ASSERT_TRUE(ledger.give(second, one));
  EXPECT_EQ(shown(), step_bytes(2)) << "what is given back is shown no more";
  ledger.detach(first);
  EXPECT_EQ(shown(), 0U) << "nor is what a process had that has ended";
  ASSERT_TRUE(ledger.show(second, of_second));
  const ProcessId other = process_of("b");
  const LinearByte of_other = ledger.take(other, 1).value().first;
  EXPECT_THAT(refusal(ledger.show(other, of_other)), HasSubstr("0 of 0 are in use"));
  a.window_bytes = step_bytes(1);
  ASSERT_TRUE(ledger.set(a)) << "less than is in use";
  const LinearByte more = ledger.take(second, 1).value().first;
  EXPECT_THAT(refusal(ledger.show(second, more)), HasSubstr("4194304 of 2097152 are in use"));
}

TEST_F(Tenants, cannot_give_what_they_do_not_have) {
  const auto process = process_of("a");
  const auto other = process_of("a");
  ASSERT_TRUE(ledger.take(process, 2 * extent_step));
  EXPECT_EQ(refusal(ledger.give(other, {})), "no bytes of this process begin at 0");
  EXPECT_EQ(refusal(ledger.give(process, at_step(1))), "no bytes of this process begin at 2097152");
  EXPECT_TRUE(ledger.give(process, {}));
  EXPECT_EQ(refusal(ledger.give(process, {})), "no bytes of this process begin at 0");
}

TEST_F(Tenants, get_bytes_back_only_once_they_are_clean) {
  const auto process = process_of("a");
  ASSERT_TRUE(ledger.take(process, 8 * extent_step));
  ASSERT_TRUE(ledger.give(process, {}));
  EXPECT_FALSE(ledger.take(process, 1));
  EXPECT_EQ(ledger.next_unclean(1)->extent.bytes, extent_step);
  EXPECT_TRUE(ledger.next_unclean(1, "a"));
  EXPECT_FALSE(ledger.next_unclean(1, "b"));
  const auto piece = ledger.next_unclean(4 * extent_step - 1);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->tenant, "a");
  EXPECT_EQ(piece->extent, (lease::Extent{{}, 3 * extent_step}));
  ledger.cleaned(*piece);
  EXPECT_EQ(ledger.next_unclean(UINT64_MAX)->extent.first, at_step(3));
  EXPECT_EQ(ledger.next_unclean(UINT64_MAX)->extent.bytes, 5 * extent_step);
  EXPECT_EQ(ledger.take(process, 3 * extent_step).value().first, LinearByte());
  EXPECT_FALSE(ledger.take(process, 1));
  ledger.lose(*ledger.next_unclean(extent_step));
  EXPECT_FALSE(ledger.next_unclean(UINT64_MAX));
  EXPECT_FALSE(ledger.take(process, 1));
  ledger.detach(process);
  clean_all();
  EXPECT_EQ(ledger.tenant("a")->holdings.at(at_step(3)).state, State::lost);
}

TEST_F(Tenants, that_get_a_share_of_which_bytes_were_lost_do_not_get_these_bytes) {
  const auto lease = ledger.open("a").value();
  const auto process = ledger.attach(lease).value();
  ASSERT_TRUE(ledger.take(process, step_bytes(2)));
  ASSERT_TRUE(ledger.take(process, step_bytes(4)));
  ASSERT_TRUE(ledger.give(process, at_step(2)));
  ledger.lose(*ledger.next_unclean(UINT64_MAX));
  // What is lost lies beyond the bytes that are left, and keeps no program from that.
  Terms fewer = terms("a", {0, 1}, 1, 8, 1);
  fewer.bytes = step_bytes(2);
  EXPECT_EQ(refusal(ledger.set(fewer)), "taken");
  ASSERT_TRUE(ledger.give(process, {}));
  ledger.detach(process);
  ledger.close(lease);
  clean_all();
  EXPECT_FALSE(ledger.busy("a"));
  ASSERT_TRUE(ledger.replace({terms("b", {0}, 1, 8, 1), terms("a", {1}, 2, 8, 2)}));
  EXPECT_EQ(holdings("a"), 0U);
  EXPECT_EQ(holdings("b"), 1U);
  const auto other = process_of("b");
  EXPECT_EQ(ledger.take(other, step_bytes(3)).error().message,
            "6291456 bytes for tenant 'b': the longest free run has 4194304 of 16777216");
  EXPECT_EQ(ledger.take(other, step_bytes(2)).value().first, LinearByte());
  EXPECT_EQ(ledger.take(other, step_bytes(2)).value().first, at_step(6));
}

TEST_F(Tenants, have_a_lease_as_long_as_its_owner_or_one_of_its_processes_lives) {
  const auto lease = ledger.open("a").value();
  const auto first = ledger.attach(lease).value();
  const auto second = ledger.attach(lease).value();
  ASSERT_TRUE(ledger.take(first, 1));
  ASSERT_TRUE(ledger.take(second, 1));
  EXPECT_EQ(ledger.processes_of("a"), 2U);
  EXPECT_EQ(ledger.processes_of("b"), 0U);
  ledger.close(lease);
  ledger.detach(first);
  EXPECT_TRUE(ledger.book().leases.contains(lease));
  EXPECT_EQ(ledger.tenant("a")->holdings.at({}).state, State::unclean);
  EXPECT_EQ(ledger.tenant("a")->holdings.at(at_step(1)).state, State::given);
  ledger.detach(second);
  EXPECT_TRUE(ledger.book().leases.empty());
  EXPECT_TRUE(ledger.busy("a")) << "its memory is not clean";
  clean_all();
  EXPECT_FALSE(ledger.busy("a"));
  const auto next = ledger.open("a").value();
  ledger.detach(ledger.attach(next).value());
  EXPECT_TRUE(ledger.book().leases.contains(next)) << "its owner is there";
  ledger.close(next);
  EXPECT_TRUE(ledger.book().leases.empty());
}

TEST_F(Tenants, that_are_revoked_get_nothing_until_all_have_ended) {
  EXPECT_FALSE(ledger.revoke("c"));
  ASSERT_TRUE(ledger.revoke("b"));
  EXPECT_TRUE(ledger.open("b")) << "nobody had to end";
  const auto lease = ledger.open("a").value();
  const auto process = ledger.attach(lease).value();
  ASSERT_TRUE(ledger.revoke("a"));
  EXPECT_EQ(ledger.take(process, 1).error().message, "tenant 'a' was revoked");
  EXPECT_EQ(ledger.attach(lease).error().message, "tenant 'a' was revoked");
  EXPECT_EQ(ledger.open("a").error().message,
            "tenant 'a' was revoked: its processes must end first");
  ledger.close(lease);
  EXPECT_FALSE(ledger.open("a"));
  ledger.detach(process);
  EXPECT_TRUE(ledger.open("a"));
}

TEST_F(Tenants, stay_revoked_while_another_lease_lives) {
  const auto first = ledger.open("a").value();
  const auto second = ledger.open("a").value();
  ASSERT_TRUE(ledger.revoke("a"));
  ledger.close(first);
  EXPECT_FALSE(ledger.open("a"));
  ledger.close(second);
  EXPECT_TRUE(ledger.open("a"));
}

TEST_F(Tenants, have_a_limited_number_of_processes) {
  const auto lease = ledger.open("a").value();
  for (int i = 0; i < 1024; ++i) ASSERT_TRUE(ledger.attach(lease));
  EXPECT_EQ(ledger.attach(lease).error().message,
            "tenant 'a' already has 1024 processes, the largest possible number");
  EXPECT_TRUE(ledger.attach(ledger.open("b").value()));
}

// Books that no ledger writes.
class Proof : public testing::Test {
 protected:
  [[nodiscard]] std::string fault() const {
    const auto proved = prove(book);
    return proved ? "none" : proved.error().message;
  }
  Book book{{{"a", {terms("a", {0}, 1, 8, 1), {{{}, {extent_step, {{2, {}}}, State::given}}}}},
             {"b", {terms("b", {2}, 2, 8, 2), {}}}},
            {{1, {"a"}}, {3, {"b"}}},
            {{2, {1}}}};
};

TEST_F(Proof, sees_what_two_tenants_share) {
  EXPECT_EQ(fault(), "none");
  book.tenants["b"].terms.tpcs = {0, 2};
  EXPECT_EQ(fault(), "tenants 'a' and 'b' share the TPCs 0");
  book.tenants["b"].terms.tpcs = {2};
  book.tenants["b"].terms.colors = {3, 4};
  EXPECT_EQ(fault(), "tenants 'a' and 'b' share the colours 0 of 8");
  book.tenants["b"].terms.colors = {2, 4};
  book.tenants["b"].terms.sync_domain = 1;
  EXPECT_EQ(fault(), "tenants 'a' and 'b' share the memory synchronisation domain 1");
  book.tenants["b"].terms.sync_domain = std::nullopt;
  EXPECT_EQ(fault(), "none");
  book.tenants["b"].terms.sync_domain = 0;
  EXPECT_THAT(fault(), HasSubstr("tenant 'b' has the memory synchronisation domain 0"));
}

TEST_F(Proof, sees_bytes_that_two_have_or_that_nobody_may_have) {
  auto& holdings = book.tenants["a"].holdings;
  holdings[at_step(1) - 1] = {extent_step, {{2, {}}}, State::given};
  EXPECT_EQ(fault(), "tenant 'a': the bytes at 2097151 are given twice");
  holdings.erase(at_step(1) - 1);
  holdings[at_step(1)] = {8 * extent_step, {{2, {}}}, State::given};
  EXPECT_EQ(fault(), "tenant 'a': 16777216 bytes at 2097152, of 16777216 that it may have");
  holdings[at_step(1)] = {9 * extent_step, {{2, {}}}, State::given};
  EXPECT_THAT(fault(), HasSubstr("18874368 bytes at 2097152"));
  holdings[at_step(1)] = {0, {{2, {}}}, State::given};
  EXPECT_THAT(fault(), HasSubstr("0 bytes at 2097152"));
  holdings[at_step(1)] = {7 * extent_step, {{2, {}}}, State::given};
  EXPECT_EQ(fault(), "none");
  book.tenants["a"].terms.bytes += 1;
  EXPECT_EQ(fault(), "tenant 'a': 16777217 bytes of a share of 16777216");
}

TEST_F(Proof, sees_what_belongs_to_nobody_that_is_there) {
  auto& holding = book.tenants["a"].holdings[{}];
  holding.owners.emplace(9, Owner{});
  EXPECT_EQ(fault(), "tenant 'a': the bytes at 0 are of a process that is gone");
  book.processes[9] = {3};
  EXPECT_EQ(fault(), "tenant 'a': the bytes at 0 are of another tenant's process");
  holding = {extent_step, {{2, {}}}, State::unclean};
  EXPECT_EQ(fault(), "tenant 'a': the bytes at 0 belong to a process and to none");
  holding = {extent_step, {}, State::lost};
  EXPECT_EQ(fault(), "none");
  holding.keys[0] = "0f";
  EXPECT_EQ(fault(), "tenant 'a': the bytes at 0 belong to a process and to none");
  holding = {extent_step, {}, State::given};
  EXPECT_EQ(fault(), "tenant 'a': the bytes at 0 are given, but to no process");
  book.processes[10] = {1};
  holding = {extent_step, {{2, {}}, {10, {}}}, State::given, {{0, "0f"}}};
  EXPECT_EQ(fault(), "none") << "two processes of one tenant";
  holding = {extent_step, {}, State::lost};
  book.processes[9] = {7};
  EXPECT_EQ(fault(), "process 9 is of a lease that is gone");
  book.processes.erase(9);
  book.leases[3].tenant = "c";
  EXPECT_EQ(fault(), "lease 3 is of 'c', a tenant that is gone");
}

}  // namespace
}  // namespace demarc::serve
