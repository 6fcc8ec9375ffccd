// A whole server on the stand-in driver, beside other servers and programs: who has the card, who
// waits for whom, and what an end leaves.
#include "whole_server.hpp"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

#include "staying_process.hpp"

namespace demarc::serve {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST_F(WholeServers, have_their_card_and_their_socket_alone) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  WholeServer same(plan(), good_card);
  EXPECT_EQ(same.end_by(0), 1);
  EXPECT_EQ(same.said(), fmt::format("socket '{}': another demarc serve listens there; give "
                                     "another --socket\n",
                                     socket));
  WholeServer other(plan_at(folder / "other"), good_card);
  ASSERT_TRUE(other.says("divides")) << "at once, without waiting";
  EXPECT_EQ(other.end_by(0), 2);
  EXPECT_THAT(other.said(), testing::StartsWith(fmt::format("another demarc serve (process {} (",
                                                            server.process())));
}

TEST_F(WholeServers, that_would_end_are_waited_for_and_those_that_are_used_are_not) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  ServePlan idle = plan();
  idle.end_when_idle = 1000;
  WholeServer server(idle, good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  const auto second = [&] {
    auto one = std::make_unique<WholeServer>(plan_at(folder / "other"), good_card);
    return one;
  };
  {
    const auto waits = second();
    ASSERT_TRUE(waits->says("starts or ends on")) << waits->said();
    EXPECT_EQ(waits->end_by(), 0);
    EXPECT_THAT(waits->said(), HasSubstr("told to end before the card was free"));
  }
  {
    const auto used = client();
    ASSERT_TRUE(used.list());
    const auto refused = second();
    ASSERT_TRUE(refused->says("divides")) << "at once, without waiting";
    EXPECT_EQ(refused->end_by(0), 2);
  }
  // It sees that the connection has ended within a tenth of a second.
  bool waits = false;
  for (int tries = 0; tries < 20 && !waits; ++tries) {
    const auto one = second();
    waits = one->says("starts or ends on");
  }
  EXPECT_TRUE(waits);
}

// The next one waits for it, and is not refused.
TEST_F(WholeServers, say_that_they_end_before_they_have_ended) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  fake::FakeConfig slow = good_card;
  slow.release_us = 100'000;
  WholeServer server(plan(), slow);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  const auto claim = lease::CardClaim::open({test::fake_libcuda()}).value();
  EXPECT_TRUE(claim.others(card_uuid)->serving);
  server.signal(SIGTERM);
  auto seen = claim.others(card_uuid).value();
  for (; seen.serving; seen = claim.others(card_uuid).value()) ::usleep(100);
  EXPECT_TRUE(seen.server) << "it frees its memory";
  EXPECT_EQ(server.end_by(0), 0);
}

TEST_F(WholeServers, that_were_killed_leave_their_parts_to_their_programs) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer killed(plan(), good_card);
  ASSERT_TRUE(killed.says(serving_line)) << killed.said();
  const pid_t owner = test::staying_process([&] {
    static auto own = client();
    EXPECT_TRUE(own.open("a", ""));
  });
  EXPECT_EQ(killed.end_by(SIGKILL), 128 + SIGKILL);
  ServePlan next = plan_at(folder / "other");
  WholeServer refused(next, good_card);
  EXPECT_EQ(refused.end_by(0), 2);
  EXPECT_THAT(refused.said(), HasSubstr("still have its parts"));
  next.survivors = Survivors::wait;
  for (const int signal : {SIGTERM, SIGINT}) {
    WholeServer told(next, good_card);
    EXPECT_TRUE(told.says("waiting for them")) << told.said();
    EXPECT_EQ(told.end_by(signal), 0);
    EXPECT_THAT(told.said(), EndsWith("told to end before the card was free\n"));
  }
  WholeServer waits(next, good_card);
  EXPECT_TRUE(waits.says("waiting for them")) << waits.said();
  test::end_process(owner);
  EXPECT_TRUE(waits.says(serving_line)) << waits.said();
}

TEST_F(WholeServers, claim_a_driver_that_is_installed_anew_for_them_and_for_their_programs) {
  const std::string driver = folder / "libcuda.so.1";
  std::filesystem::copy_file(test::fake_libcuda(), driver);
  ::setenv("DEMARC_LIBCUDA", driver.c_str(), 1);
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  std::filesystem::copy_file(driver, driver + ".new");
  std::filesystem::rename(driver + ".new", driver);
  EXPECT_TRUE(server.says("were installed anew")) << server.said();
  const auto seen = [&] { return lease::CardClaim::open({driver})->others(card_uuid).value(); };
  EXPECT_TRUE(seen().serving);
  const pid_t tenant = test::staying_process([&] {
    static auto owner = client();
    static auto process = client();
    EXPECT_TRUE(process.attach(owner.open("a", "")->token));
  });
  EXPECT_EQ(server.end_by(SIGKILL), 128 + SIGKILL);
  EXPECT_FALSE(seen().server);
  EXPECT_TRUE(seen().lent) << "its program has the claims on the new file, too";
  EXPECT_EQ(seen().of(lease::PartOwner::tenants).tpcs[0], 0xfU);
  test::end_process(tenant);
  EXPECT_FALSE(seen().lent);
}

TEST_F(WholeServers, say_once_that_a_driver_that_was_installed_anew_cannot_be_claimed_yet) {
  const std::string driver = folder / "libcuda.so.1";
  std::filesystem::copy_file(test::fake_libcuda(), driver);
  ::setenv("DEMARC_LIBCUDA", driver.c_str(), 1);
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  std::filesystem::copy_file(driver, driver + ".new");
  {
    const auto other = lease::CardClaim::open({driver + ".new"}).value();
    const auto turn = other.turn();
    std::filesystem::rename(driver + ".new", driver);
    ASSERT_TRUE(server.says("has locked this file")) << server.said();
    ::usleep(2'200'000);  // it looks once a second
  }
  EXPECT_TRUE(server.says("were installed anew")) << server.said();
  EXPECT_EQ(server.end_by(), 0);
  const std::string said = server.said();
  EXPECT_EQ(said.find("has locked this file"), said.rfind("has locked this file")) << said;
  EXPECT_THAT(said, testing::Not(HasSubstr("\n\n"))) << "nothing is said of what has passed";
}

// A child of a process with a lease has closed all files, and the lease's owner stays.
TEST_F(WholeServers, leave_nothing_of_a_tenant_behind) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  const auto child_of_a_program = [&] {
    const std::string number = test::fresh_folder("child") / "number";
    const pid_t attached = test::staying_process([&] {
      static auto owner = client();
      static auto process = client();
      EXPECT_TRUE(process.attach(owner.open("a", "")->token));
      const pid_t child = ::fork();
      if (child == 0) {
        ::syscall(SYS_close_range, 3, ~0U, 0);
        for (;;) ::pause();
      }
      EXPECT_TRUE(write_file(number, std::to_string(child)));
    });
    test::end_process(attached);
    return std::stoi(read_file(number).value());
  };
  const auto ends = [](pid_t process) { return ::kill(process, 0) != 0 || is_zombie(process); };
  for (const bool by_revoke : {true, false}) {
    WholeServer server(plan(), good_card);
    ASSERT_TRUE(server.says(serving_line)) << server.said();
    const pid_t child = child_of_a_program();
    EXPECT_FALSE(ends(child));
    if (by_revoke) {
      EXPECT_TRUE(client().revoke("a"));
      EXPECT_TRUE(ends(child));
    }
    EXPECT_EQ(server.end_by(), 0) << server.said();
    EXPECT_TRUE(ends(child));
  }
}

TEST_F(WholeServers, end_with_the_daemon_of_mps_that_they_started) {
  test::write_mps_control(folder);
  const std::string programs = std::getenv("PATH");
  ::setenv("PATH", (folder.string() + ":" + programs).c_str(), 1);
  write_config("description = \"h100-sxm\"\nmemory = \"16 MiB\"\nmps = \"on\"\n" +
               tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  const bool serves = server.says(serving_line);
  ::setenv("PATH", programs.c_str(), 1);
  ASSERT_TRUE(serves) << server.said();
  EXPECT_THAT(server.said(), EndsWith(", with MPS\n"));
  EXPECT_EQ(client().list()->mps, "on");
  auto owner = client();
  EXPECT_EQ(owner.open("a", "")->lease.mps, socket + ".mps");
  EXPECT_THAT(client().revoke("a").has_value(), true);
  ::kill(std::stoi(read_file(socket + ".mps/pid").value()), SIGKILL);
  ASSERT_TRUE(server.says("the daemon of MPS has ended: programs that run may have failed"))
      << server.said();
  { const auto last = std::move(owner); }
  EXPECT_EQ(server.end_by(0), 2);
  EXPECT_THAT(server.said(), EndsWith("the daemon of MPS has ended: start demarc serve again\n"));
  EXPECT_FALSE(std::filesystem::exists(socket + ".mps"));
}

}  // namespace
}  // namespace demarc::serve
