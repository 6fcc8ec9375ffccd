// Who gets a place at the server, and whose place is taken for another one.
#include "answering.hpp"

namespace demarc::serve {
namespace {

using testing::HasSubstr;

class Places : public Answering {};

// Connections that hold nothing give way, so its own user always gets in.
TEST_F(Places, has_a_place_for_its_own_user) {
  server.reset();
  options.limits = {6, 3, 2};
  start();
  const auto owner = connect();
  static_cast<void>(open(owner).token);
  std::vector<lease::PacketSocket> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(connect());
    ASSERT_TRUE(server->turn(0));
    ASSERT_TRUE(server->turn(0));
    EXPECT_LE(server->connections(), 6U);
  }
  const auto other = connect();
  EXPECT_EQ(refusal(other, lease::RevokeRequest{"b"}), "done");
  EXPECT_THAT(words(next(idle[1])), HasSubstr("another one needed its place"))
      << "the first is the one more that a process with a lease may keep";
  EXPECT_FALSE(readable(idle[0].file()));
  EXPECT_EQ(refusal(owner, lease::TakeRequest{1}), "attach to a lease before memory is taken")
      << "a lease gives way to nobody";
}

TEST_F(Places, takes_the_place_of_the_one_that_has_asked_nothing_for_the_longest_time) {
  server.reset();
  options.limits = {4, 4, 0};
  start();
  const auto first = connect();
  ASSERT_TRUE(server->turn(0));
  const auto second = connect();
  ASSERT_TRUE(server->turn(0));
  EXPECT_EQ(ask<lease::ListHead>(first, lease::ListRequest{})->tenants, 2U);
  for (int tenant = 0; tenant < 2; ++tenant) static_cast<void>(next(first));
  const auto third = connect();
  const auto fourth = connect();
  EXPECT_EQ(refusal(connect(), lease::RevokeRequest{"b"}), "done");
  EXPECT_THAT(words(next(second)), HasSubstr("another one needed its place"));
  EXPECT_EQ(ask<lease::ListHead>(first, lease::ListRequest{})->tenants, 2U);
}

// One that has just come has not been idle for longer than one that asked before.
TEST_F(Places, takes_the_place_of_one_that_asked_before_others_came) {
  server.reset();
  options.limits = {4, 4, 0};
  start();
  const auto first = connect();
  EXPECT_EQ(refusal(first, lease::TakeRequest{1}), "attach to a lease before memory is taken");
  std::vector<lease::PacketSocket> later;
  for (int i = 0; i < 3; ++i) {
    later.push_back(connect());
    ASSERT_TRUE(server->turn(0));
  }
  EXPECT_EQ(refusal(connect(), lease::RevokeRequest{"b"}), "done");
  EXPECT_THAT(words(next(first)), HasSubstr("another one needed its place"));
  for (const auto& one : later) EXPECT_FALSE(readable(one.file()));
}

TEST_F(Places, has_room_for_another_one_beside_one_that_is_told_why_its_lease_has_ended) {
  server.reset();
  options.farewell_seconds = 1000;
  options.limits = {4, 4, 0};
  start();
  const auto owner = connect();
  static_cast<void>(open(owner, "b"));
  const auto rule = connect();
  EXPECT_EQ(refusal(rule, lease::RevokeRequest{"b"}), "done");
  const auto third = connect();
  const auto fourth = connect();
  ASSERT_TRUE(server->turn(0));
  EXPECT_EQ(refusal(connect(), lease::TakeRequest{1}), "attach to a lease before memory is taken");
  for (const auto* other : {&rule, &third, &fourth}) EXPECT_FALSE(readable(other->file()));
  EXPECT_THAT(words(next(owner)), HasSubstr("tenant 'b' was revoked"));
  EXPECT_FALSE(readable(owner.file())) << "it is not ended before it has asked again";
}

TEST_F(Places, takes_no_place_of_one_that_waits_for_its_answer) {
  server.reset();
  options.limits = {6, 6, 0};
  start();
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  const auto kept = connect();  // the one more that a process with a lease may keep
  ASSERT_TRUE(server->turn(0));
  const auto asking = connect();
  mps_hangs = true;
  ask_only(asking, lease::EndWorkRequest{});
  std::vector<lease::PacketSocket> idle;
  for (int i = 0; i < 8; ++i) {
    idle.push_back(connect());
    ASSERT_TRUE(server->turn(0));
    ASSERT_TRUE(server->turn(0));
  }
  EXPECT_FALSE(readable(asking.file()));
  mps_hangs = false;
  EXPECT_EQ(words(next(asking)), "done");
}

// A user of the group is a party as others are, whatever user started the server.
TEST_F(Places, has_no_more_places_for_a_user_of_the_group_than_for_a_party) {
  server.reset();
  options.user = ::geteuid() + 1;
  options.group = ::getegid();
  options.limits = {6, 2, 1};
  start();
  const auto first = connect();
  const auto second = connect();
  static_cast<void>(open(first));
  static_cast<void>(open(second));
  EXPECT_EQ(words(next(connect())),
            fmt::format("user {} already has 2 connections with leases, the largest possible "
                        "number of one",
                        ::geteuid()));
}

TEST_F(Places, gives_leases_until_the_places_for_its_own_user_are_reached) {
  server.reset();
  options.limits = {8, 8, 4};
  start();
  const auto first = connect();
  const auto second = connect();
  static_cast<void>(open(first));
  static_cast<void>(open(second));
  EXPECT_EQ(refusal(connect(), lease::OpenRequest{"a", ""}),
            "this server already has 2 leases and processes, the largest number");
}

}  // namespace
}  // namespace demarc::serve
