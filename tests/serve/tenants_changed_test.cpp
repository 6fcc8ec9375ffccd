// Tenants are changed while a server runs: those that are used keep what they have.
#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Changing : public ServerTest {
 protected:
  void SetUp() override { start(); }
  cuda::Control control = cuda::Control::create().value();
};

TEST_F(Changing, bytes_grow_up_to_the_share_and_shrink_down_to_what_is_used) {
  const auto rule = connect();
  EXPECT_EQ(refusal(rule, lease::GrowRequest{"a", 2 * step}), "done");
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  EXPECT_EQ(take(process, 2 * step).first, 0U);
  EXPECT_THAT(refusal(process, lease::TakeRequest{1}), HasSubstr("the longest free run"));
  EXPECT_EQ(refusal(rule, lease::GrowRequest{"a", 3 * step}), "done");
  EXPECT_EQ(take(process, 1).first, 2 * step);
  EXPECT_THAT(refusal(rule, lease::GrowRequest{"a", 2 * step}),
              HasSubstr("uses its memory up to byte"));
  EXPECT_THAT(refusal(rule, lease::GrowRequest{"a", 9 * step}), HasSubstr("its colours hold"));
  EXPECT_THAT(refusal(rule, lease::GrowRequest{"c", step}), HasSubstr("there is no tenant 'c'"));
}

TEST_F(Changing, TPCs_move_with_all_programs_of_the_tenant) {
  const auto owner = connect();
  const auto other = connect();
  static_cast<void>(open(owner, "a", control.value()));
  static_cast<void>(open(other, "b", control.value()));
  EXPECT_THAT(card.moves, ElementsAre(control.value() + " 0-1", control.value() + " 2"))
      << "a program gets its first TPCs as it gets the next ones";
  card.moves.clear();
  card.proved.clear();
  EXPECT_EQ(refusal(connect(), lease::MoveRequest{"a", "4-5"}), "done");
  EXPECT_THAT(card.proved, ElementsAre("4-5"));
  EXPECT_THAT(card.moves, ElementsAre(control.value() + " 4-5"));
  EXPECT_EQ(status("a").tpcs, "4-5");
  EXPECT_EQ(refusal(connect(), lease::MoveRequest{"b", "0-1"}), "done") << "they are free now";
}

TEST_F(Changing, programs_that_do_not_get_their_TPCs_get_no_lease) {
  card.immovable = control.value();
  const auto owner = connect();
  EXPECT_EQ(refusal(owner, lease::OpenRequest{"a", control.value()}), "it does not move");
  EXPECT_EQ(status("a").leases, 0U);
  card.immovable.clear();
  static_cast<void>(open(owner, "a", control.value()));
  EXPECT_EQ(status("a").leases, 1U);
}

TEST_F(Changing, TPCs_that_are_anothers_or_do_not_hold_are_refused) {
  const auto owner = connect();
  static_cast<void>(open(owner, "a", control.value()));
  card.moves.clear();
  card.unproved_tpc = 7;
  const auto rule = connect();
  EXPECT_EQ(refusal(rule, lease::MoveRequest{"a", "2"}), "tenants 'a' and 'b' share the TPCs 2");
  EXPECT_EQ(refusal(rule, lease::MoveRequest{"a", "7"}), "TPC 7 is not kept");
  EXPECT_THAT(refusal(rule, lease::MoveRequest{"a", "128"}), HasSubstr("128"));
  EXPECT_THAT(refusal(rule, lease::MoveRequest{"a", ""}), HasSubstr("TPCs"));
  EXPECT_THAT(refusal(rule, lease::MoveRequest{"c", "7"}), HasSubstr("there is no tenant 'c'"));
  EXPECT_THAT(card.moves, IsEmpty());
  EXPECT_EQ(status("a").tpcs, "0-1");
}

TEST_F(Changing, programs_that_would_stay_behind_are_not_moved) {
  const auto owner = connect();
  static_cast<void>(open(owner, "a", control.value()));
  card.moves.clear();
  control.block().counters.graphs = 1;
  EXPECT_THAT(refusal(connect(), lease::MoveRequest{"a", "4"}),
              HasSubstr("has launched CUDA graphs, which keep their TPCs"));
  const auto unknown = connect();
  static_cast<void>(open(unknown, "b"));
  EXPECT_THAT(refusal(connect(), lease::MoveRequest{"b", "4"}), HasSubstr("cannot be moved"));
  EXPECT_THAT(card.moves, IsEmpty());
}

TEST_F(Changing, programs_go_back_when_one_of_them_does_not_move) {
  const auto last = cuda::Control::create().value();
  const auto owner = connect();
  const auto second = connect();
  static_cast<void>(open(owner, "a", control.value()));
  static_cast<void>(open(second, "a", last.value()));
  card.moves.clear();
  card.immovable = last.value();
  EXPECT_EQ(refusal(connect(), lease::MoveRequest{"a", "4"}), "it does not move");
  EXPECT_THAT(card.moves,
              ElementsAre(control.value() + " 4", last.value() + " 4", control.value() + " 0-1"));
  EXPECT_EQ(status("a").tpcs, "0-1");
}

TEST_F(Changing, a_new_configuration_changes_tenants_that_are_not_used) {
  card.proved.clear();
  const auto lines = server->reload({terms_of("b", {0, 1}, 1, 1), terms_of("c", {3}, 4)}).value();
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_THAT(card.proved, ElementsAre("0-1", "3"));
  EXPECT_EQ(server->status().size(), 2U);
  EXPECT_EQ(open(connect(), "c").lease.tpcs, "3");
  card.proved.clear();
  ASSERT_TRUE(server->reload({terms_of("b", {0, 1}, 1, 1), terms_of("c", {3}, 4)}));
  EXPECT_THAT(card.proved, IsEmpty()) << "nothing has changed";
}

TEST_F(Changing, a_new_configuration_leaves_tenants_that_are_used) {
  const auto owner = connect();
  static_cast<void>(open(owner, "a"));
  EXPECT_THAT(server->reload({terms_of("a", {5}, 1, 1), terms_of("b", {2}, 2, 2)}).value(),
              ElementsAre("tenant 'a' is in use and stays as it is"));
  EXPECT_EQ(status("a").tpcs, "0-1");
  EXPECT_THAT(server->reload({terms_of("b", {3}, 2, 2)}).value(),
              ElementsAre("tenant 'a' is in use and stays as it is"));
  EXPECT_EQ(status("a").tpcs, "0-1");
  EXPECT_EQ(status("b").tpcs, "3");
  EXPECT_THAT(server->reload({terms_of("a", {0, 1}, 1, 1)}).value(), IsEmpty());
  EXPECT_EQ(server->status().size(), 1U);
}

TEST_F(Changing, a_configuration_that_cannot_be_changes_nothing) {
  const auto owner = connect();
  static_cast<void>(open(owner, "a"));
  const auto taken = server->reload({terms_of("a", {5}, 1, 1), terms_of("b", {0}, 2, 2)});
  ASSERT_FALSE(taken) << "'a' stays on TPC 0";
  EXPECT_EQ(taken.error().message, "tenants 'a' and 'b' share the TPCs 0");
  card.unproved_tpc = 9;
  EXPECT_EQ(server->reload({terms_of("b", {9}, 2, 2)}).error().message, "TPC 9 is not kept");
  EXPECT_EQ(status("b").tpcs, "2");
}

}  // namespace
}  // namespace demarc::serve
