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
  EXPECT_EQ(take(process, 2 * step).first, color::LinearByte());
  EXPECT_THAT(refusal(process, lease::TakeRequest{1}), HasSubstr("the longest free run"));
  EXPECT_EQ(refusal(rule, lease::GrowRequest{"a", 3 * step}), "done");
  EXPECT_EQ(take(process, 1).first, color::LinearByte(2 * step));
  EXPECT_THAT(refusal(rule, lease::GrowRequest{"a", 2 * step}),
              HasSubstr("uses its memory up to byte"));
  EXPECT_THAT(refusal(rule, lease::GrowRequest{"a", 9 * step}), HasSubstr("its colours hold"));
  EXPECT_THAT(refusal(rule, lease::GrowRequest{"c", step}), HasSubstr("there is no tenant 'c'"));
}

// Whether it is in a container cannot be told any more, and its number may be another's.
TEST_F(Changing, no_tenant_changes_for_a_process_that_has_ended) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t process = in_process([&] {
    const auto client = lease::PacketSocket::connect(options.socket).value();
    EXPECT_TRUE(client.send(to_text(lease::Request(lease::ListRequest{}))).value());
    static_cast<void>(client.receive());  // from here on the server knows the connection
    if (::fork() != 0) return 0;
    char byte = 0;
    static_cast<void>(!::read(go[0], &byte, 1));  // the parent has ended
    EXPECT_TRUE(client.send(to_text(lease::Request(lease::GrowRequest{"a", step}))).value());
    for (int i = 0; i < 3; ++i) static_cast<void>(client.receive());  // of the list, and this one's
    ::_exit(0);
  });
  while (is_alive(process)) ASSERT_TRUE(server->turn(1));
  EXPECT_EQ(end_of(process), 0);
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  turn_until([&] { return server->connections() == 0; });
  EXPECT_EQ(status("a").bytes, PlantedCard::share_bytes);
  for (const int end : go) ::close(end);
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
  const auto last = cuda::Control::create().value();
  const auto second = connect();
  static_cast<void>(open(second, "a", last.value()));
  card.moves.clear();
  EXPECT_EQ(refusal(connect(), lease::MoveRequest{"a", "6"}), "done");
  EXPECT_THAT(card.moves, ElementsAre(control.value() + " 6", last.value() + " 6"));
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
  card.unproved_tpc = gpu::TpcIndex(7);
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
  auto& counters = control.block().counters;
  for (auto* graphs : {&counters.graphs, &counters.uploads}) {
    *graphs = 1;
    EXPECT_THAT(refusal(connect(), lease::MoveRequest{"a", "4"}),
                HasSubstr("has launched or uploaded CUDA graphs, which keep their TPCs"));
    *graphs = 0;
  }
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

// What the server claims of the card for its tenants.
class Claiming : public Changing {
 protected:
  void SetUp() override {
    options.claim = [this](const Book& book) -> Result<void> {
      claims.push_back(to_string(book.tenants.at("b").terms.tpcs));
      if (claims.back() == refused) return missing_capability("another has it");
      return {};
    };
    Changing::SetUp();
  }
  std::vector<std::string> claims;
  std::string refused = "9";
};

TEST_F(Claiming, what_tenants_get_is_claimed_before_it_is_tried) {
  EXPECT_THAT(claims, ElementsAre("2"));
  EXPECT_EQ(refusal(connect(), lease::MoveRequest{"b", "3"}), "done");
  ASSERT_TRUE(server->reload({terms_of("b", {4}, 2, 2)}));
  EXPECT_THAT(claims, ElementsAre("2", "3", "4"));
}

TEST_F(Claiming, what_another_has_is_refused_and_not_tried) {
  card.proved.clear();
  EXPECT_EQ(refusal(connect(), lease::MoveRequest{"b", "9"}), "another has it");
  EXPECT_EQ(server->reload({terms_of("b", {9}, 2, 2)}).error().message, "another has it");
  EXPECT_THAT(card.proved, IsEmpty());
  EXPECT_EQ(status("b").tpcs, "2");
  options.claim = [](const Book&) -> Result<void> {
    return missing_capability("a program has it");
  };
  server.reset();
  EXPECT_EQ(Server::start(options, card, {terms_of("b", {2}, 2, 2)}).error().message,
            "a program has it");
}

TEST_F(Claiming, what_was_claimed_and_does_not_hold_is_given_back) {
  card.unproved_tpc = gpu::TpcIndex(5);
  EXPECT_EQ(refusal(connect(), lease::MoveRequest{"b", "5"}), "TPC 5 is not kept");
  EXPECT_EQ(server->reload({terms_of("b", {5}, 2, 2)}).error().message, "TPC 5 is not kept");
  EXPECT_THAT(claims, ElementsAre("2", "5", "2", "5", "2"));
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
  card.unproved_tpc = gpu::TpcIndex(9);
  EXPECT_EQ(server->reload({terms_of("b", {9}, 2, 2)}).error().message, "TPC 9 is not kept");
  EXPECT_EQ(status("b").tpcs, "2");
}

TEST_F(Changing, what_was_lost_keeps_no_tenant_and_is_given_to_none) {
  card.scrub_error = "no zeros";
  {
    const auto owner = connect();
    const std::string token = open(owner).token;
    const pid_t program = in_process([&] {
      auto own = lease::LeaseClient::connect(options.socket).value();
      return own.attach(token) && own.take(2 * step) ? 0 : 1;
    });
    turn_until([&] { return status("a").lost_bytes != 0; });
    EXPECT_EQ(end_of(program), 0);
  }
  card.scrub_error.clear();
  turn_until([&] { return status("a").leases == 0; });
  EXPECT_THAT(server->reload({terms_of("b", {2}, 2, 2)}).value(), IsEmpty()) << "nobody is in it";
  EXPECT_THAT(server->reload({terms_of("b", {2}, 2, 2), terms_of("c", {0}, 1)}).value(), IsEmpty());
  EXPECT_EQ(status("c").lost_bytes, 2 * step) << "the share is the same";
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner, "c").token));
  EXPECT_EQ(take(process, step).first, color::LinearByte(2 * step));
  EXPECT_EQ(refusal(connect(), lease::GrowRequest{"c", 3 * step}), "done");
  EXPECT_THAT(refusal(process, lease::TakeRequest{1}), HasSubstr("longest free run has 0 of"));
}

}  // namespace
}  // namespace demarc::serve
