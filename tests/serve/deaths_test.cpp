// Processes end in every way there is; what they had comes back once it cannot be used.
#include "server_fixture.hpp"

#include <random>

namespace demarc::serve {
namespace {

using lease::LeaseClient;
using testing::HasSubstr;

class Deaths : public ServerTest {
 protected:
  void SetUp() override {
    start();
    ASSERT_EQ(::pipe(go_), 0);
  }
  void TearDown() override {
    ::close(go_[0]);
    if (go_[1] >= 0) ::close(go_[1]);
  }
  // In a child: until let_go().
  void wait_for_word() const {
    ::close(go_[1]);
    char byte = 0;
    static_cast<void>(!::read(go_[0], &byte, 1));
  }
  void let_go() { ::close(std::exchange(go_[1], -1)); }

  // In a child: attached, with so many bytes, all of them 'x'.
  [[nodiscard]] LeaseClient user_of(const std::string& token, std::uint64_t bytes) {
    auto client = LeaseClient::connect(options.socket).value();
    static_cast<void>(client.attach(token).value());
    const auto extent = client.take(bytes).value();
    std::memset(card.memory(1) + extent.first.raw(), 'x', extent.bytes);
    return client;
  }
  void expect_zeros() {
    EXPECT_EQ(std::count(card.memory(1), card.memory(1) + PlantedCard::share_bytes, '\0'),
              PlantedCard::share_bytes);
  }

  int go_[2] = {-1, -1};
};

TEST_F(Deaths, give_memory_back_clean_when_a_process_is_killed) {
  static_cast<void>(card.memory(1));
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = in_process([&] {
    const auto client = user_of(token, 5 * step);
    wait_for_word();
    return 0;
  });
  turn_until([&] { return card.memory(1)[5 * step - 1] == 'x'; });
  EXPECT_EQ(status("a").given_bytes, 5 * step);
  EXPECT_THAT(status("a").processes, testing::ElementsAre(process));
  ::kill(process, SIGKILL);
  EXPECT_EQ(end_of(process), SIGKILL);
  turn_until([&] { return status("a").given_bytes + status("a").unclean_bytes == 0; });
  expect_zeros();
  EXPECT_EQ(status("a").leases, 1U) << "its owner is there";
  EXPECT_TRUE(status("a").processes.empty());
}

TEST_F(Deaths, end_the_time_for_which_a_tenant_was_on_the_card) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  EXPECT_EQ(status("a").attached_ms, 0U);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t process = in_process([&] {
    const auto client = user_of(token, step);
    wait_for_word();
    return 0;
  });
  // The process asks nothing of the server any more.
  turn_until([&] { return status("a").given_bytes == step && status("a").attached_ms > 1; });
  const std::uint64_t living = status("a").attached_ms;
  ::usleep(2000);
  let_go();
  EXPECT_EQ(end_of(process), 0);
  turn_until([&] { return status("a").processes.empty(); });
  const std::uint64_t ended = status("a").attached_ms;
  EXPECT_GT(ended, living);
  EXPECT_LE(std::chrono::milliseconds(ended), std::chrono::steady_clock::now() - begin);
  ::usleep(2000);
  EXPECT_EQ(status("a").attached_ms, ended);
  EXPECT_EQ(status("b").attached_ms, 0U);
}

TEST_F(Deaths, of_the_owner_end_the_lease_with_the_last_process) {
  static_cast<void>(card.memory(1));
  auto owner = std::make_optional(connect());
  const std::string token = open(*owner).token;
  const pid_t process = in_process([&] {
    owner.reset();  // its copy
    const auto client = user_of(token, step);
    wait_for_word();
    return 0;
  });
  turn_until([&] { return card.memory(1)[0] == 'x'; });
  owner.reset();
  turn_until([&] { return server->connections() == 1; });
  EXPECT_EQ(status("a").leases, 1U);
  let_go();
  EXPECT_EQ(end_of(process), 0);
  turn_until([&] { return server->idle(); });
  EXPECT_EQ(server->connections(), 0U);
  EXPECT_EQ(refusal(connect(), lease::AttachRequest{token}),
            "no lease has this token: the lease has ended, or never existed");
  expect_zeros();
}

TEST_F(Deaths, of_a_connection_leave_its_memory_to_the_process_that_still_runs) {
  static_cast<void>(card.memory(1));
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = in_process([&] {
    { const auto client = user_of(token, step); }
    card.memory(1)[1] = 'y';
    wait_for_word();
    return 0;
  });
  turn_until([&] { return card.memory(1)[1] == 'y'; });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(server->turn(1));
  EXPECT_EQ(status("a").given_bytes, step);
  EXPECT_EQ(card.memory(1)[0], 'x');
  let_go();
  EXPECT_EQ(end_of(process), 0);
  turn_until([&] { return status("a").given_bytes + status("a").unclean_bytes == 0; });
  expect_zeros();
}

TEST_F(Deaths, of_a_process_leave_its_memory_to_a_child_that_has_its_files) {
  static_cast<void>(card.memory(1));
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = in_process([&] {
    const auto client = user_of(token, step);
    if (::fork() == 0) {
      wait_for_word();
      ::_exit(0);
    }
    return 0;
  });
  turn_until([&] { return card.memory(1)[0] == 'x'; });
  EXPECT_EQ(end_of(process), 0);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(server->turn(1));
  EXPECT_EQ(status("a").given_bytes, step);
  let_go();
  turn_until([&] { return status("a").given_bytes + status("a").unclean_bytes == 0; });
  expect_zeros();
}

TEST_F(Deaths, are_what_revoking_brings) {
  static_cast<void>(card.memory(1));
  auto owner = std::make_optional(connect());
  const std::string token = open(*owner).token;
  const auto other = connect();
  static_cast<void>(open(other, "b"));
  const pid_t process = in_process([&] {
    const auto client = user_of(token, step);
    wait_for_word();
    return 0;
  });
  turn_until([&] { return card.memory(1)[0] == 'x'; });
  EXPECT_EQ(refusal(connect(), lease::RevokeRequest{"a"}), "done");
  EXPECT_EQ(end_of(process), SIGKILL);
  EXPECT_EQ(ended_work, std::vector<pid_t>{process});
  EXPECT_EQ(left_of, std::vector<std::string>{"a"});
  EXPECT_TRUE(status("a").processes.empty()) << "when it is answered, that is done";
  EXPECT_EQ(status("a").leases, 0U) << "although its owner is there";
  EXPECT_EQ(status("b").leases, 1U);
  turn_until([&] { return status("a").given_bytes + status("a").unclean_bytes == 0; });
  EXPECT_EQ(refusal(connect(), lease::AttachRequest{token}),
            "no lease has this token: the lease has ended, or never existed");
  EXPECT_EQ(open(connect()).lease.tenant, "a");
  EXPECT_THAT(refusal(connect(), lease::RevokeRequest{"c"}), HasSubstr("there is no tenant 'c'"));
  EXPECT_EQ(left_of.size(), 1U);
}

TEST_F(Deaths, of_leases_without_a_process_come_with_revoking_and_their_owners_are_told) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  const auto other = connect();
  static_cast<void>(open(other, "b"));
  const auto asker = connect();
  static_cast<void>(open(asker));
  EXPECT_EQ(refusal(asker, lease::RevokeRequest{"a"}), "done") << "its own lease ends without more";
  EXPECT_EQ(refusal(connect(), lease::AttachRequest{token}),
            "no lease has this token: the lease has ended, or never existed");
  EXPECT_EQ(status("a").leases, 0U);
  EXPECT_EQ(lease::parse_answer<lease::Done>(next(owner).text).error().message,
            "tenant 'a' was revoked: this lease of it has ended");
  EXPECT_FALSE(status("a").revoked);
  EXPECT_EQ(open(asker).lease.tenant, "a");
  // Who does not hear of it is not waited for any longer than of any other refusal.
  turn_until([&] { return server->connections() == 2; });
  turn_until([&] { return readable(owner.file()); });
  ASSERT_TRUE(readable(owner.file()));
  EXPECT_TRUE(owner.receive().value().ended);
  EXPECT_FALSE(readable(other.file())) << "the other tenant's lease is as it was";
}

TEST_F(Deaths, of_what_is_left_of_a_tenant_come_before_it_has_programs_again) {
  auto owner = std::make_optional(connect());
  static_cast<void>(open(*owner));
  looks_for_left = true;
  const auto asker = connect();
  ASSERT_TRUE(asker.send(to_text(lease::Request(lease::RevokeRequest{"a"}))).value());
  turn_until([&] { return status("a").leases == 0; });
  EXPECT_EQ(refusal(connect(), lease::OpenRequest{"a", ""}),
            "tenant 'a' was revoked: its processes must end first");
  EXPECT_EQ(open(connect(), "b").lease.tenant, "b");
  EXPECT_FALSE(readable(asker.file())) << "not answered yet";
  looks_for_left = false;
  EXPECT_TRUE(lease::parse_answer<lease::Done>(next(asker).text));
  EXPECT_EQ(open(connect()).lease.tenant, "a");
}

TEST_F(Deaths, of_what_is_left_of_a_tenant_are_not_told_of_where_they_do_not_come) {
  left_ends = false;
  EXPECT_EQ(refusal(connect(), lease::RevokeRequest{"a"}), "process 4711 (a child) has not ended");
  EXPECT_THAT(told, testing::ElementsAre("tenant 'a': process 4711 (a child) has not ended"));
}

TEST_F(Deaths, that_may_take_the_work_of_others_along_are_told) {
  static_cast<void>(card.memory(1));
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = in_process([&] {
    const auto client = user_of(token, step);
    wait_for_word();
    return 0;
  });
  turn_until([&] { return card.memory(1)[0] == 'x'; });
  work_ends = false;
  EXPECT_EQ(refusal(connect(), lease::RevokeRequest{"a"}), "done");
  EXPECT_EQ(end_of(process), SIGKILL);
  EXPECT_THAT(told,
              testing::ElementsAre("tenant 'a': its processes are killed while they have work on "
                                   "the card, and the work of others may fail: no word of MPS"));
}

TEST_F(Deaths, by_a_signal_come_after_the_work_of_who_asks) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = in_process([&] {
    const auto user = user_of(token, step);
    const auto client = lease::PacketSocket::connect(options.socket).value();
    EXPECT_TRUE(client.send(to_text(lease::Request(lease::EndWorkRequest{}))).value());
    const auto answer = client.receive().value().packet.value().text;
    return lease::parse_answer<lease::Done>(answer) ? 7 : 8;
  });
  turn_until([&] { return status("a").processes.size() == 1; });
  turn_until([&] { return status("a").processes.empty(); });
  EXPECT_EQ(end_of(process), 7 << 8);
  EXPECT_EQ(ended_work, std::vector<pid_t>{process});
  EXPECT_EQ(refusal(connect(), lease::EndWorkRequest{}),
            fmt::format("process {} has no lease: it has no work that this server could end",
                        ::getpid()));
  work_ends = false;
  const auto user = connect();
  static_cast<void>(attach(user, token));
  EXPECT_EQ(refusal(connect(), lease::EndWorkRequest{}), "no word of MPS");
}

TEST_F(Deaths, of_all_come_with_the_end_of_the_server) {
  static_cast<void>(card.memory(1));
  auto owner = std::make_optional(connect());
  const std::string token = open(*owner).token;
  const pid_t process = in_process([&] {
    const auto client = user_of(token, step);
    wait_for_word();
    return 0;
  });
  turn_until([&] { return card.memory(1)[0] == 'x'; });
  EXPECT_FALSE(server->idle());
  server->end_all();
  EXPECT_FALSE(server->ended());
  turn_until([&] { return status("a").processes.empty(); });
  EXPECT_EQ(end_of(process), SIGKILL);
  EXPECT_THAT(next(*owner).text, HasSubstr("tenant 'a' was revoked"));
  EXPECT_FALSE(server->ended()) << "its owner may still have the claim of the card";
  owner.reset();
  turn_until([&] { return server->ended(); });
  EXPECT_THAT(left_of, testing::UnorderedElementsAre("a", "b"));
  turn_until([&] { return server->idle(); });
}

TEST_F(Deaths, of_children_are_brought_about_for_tenants_that_were_taken_away_too) {
  ASSERT_TRUE(server->reload({terms_of("c", {3}, 2, 2)}));
  ASSERT_TRUE(server->reload({terms_of("a", {0, 1}, 1, 1), terms_of("d", {3}, 2, 2)}));
  server->end_all();
  turn_until([&] { return server->ended(); });
  EXPECT_THAT(left_of, testing::UnorderedElementsAre("a", "b", "c", "d"));
  EXPECT_TRUE(server->all_ended());
}

TEST_F(Deaths, that_do_not_come_at_the_end_of_the_server_are_told) {
  left_ends = false;
  looks_for_left = true;
  server->end_all();
  const auto still = server->all_ended();
  ASSERT_FALSE(still);
  EXPECT_EQ(still.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(still.error().message,
            "tenant 'a': whether all of its programs have ended is not known yet; "
            "tenant 'b': whether all of its programs have ended is not known yet");
  looks_for_left = false;
  turn_until([&] { return server->ended(); });
  EXPECT_EQ(server->all_ended().error().message,
            "tenant 'a': process 4711 (a child) has not ended; "
            "tenant 'b': process 4711 (a child) has not ended");
}

TEST_F(Deaths, that_did_not_come_before_the_end_of_the_server_are_looked_at_once_more) {
  left_ends = false;
  EXPECT_THAT(refusal(connect(), lease::RevokeRequest{"a"}), HasSubstr("has not ended"));
  left_ends = true;
  server->end_all();
  turn_until([&] { return server->ended(); });
  EXPECT_TRUE(server->all_ended());
}

// A tenant was revoked just before, and its child ended between the two looks.
TEST_F(Deaths, that_came_at_the_second_look_are_not_told_as_missing) {
  left_stays = 1;
  looks_for_left = true;
  const auto asker = connect();
  ASSERT_TRUE(asker.send(to_text(lease::Request(lease::RevokeRequest{"a"}))).value());
  turn_until([&] { return !server->ended(); });
  server->end_all();
  looks_for_left = false;
  turn_until([&] { return server->ended(); });
  EXPECT_EQ(left_of.size(), 3U);
  EXPECT_TRUE(server->all_ended());
}

TEST_F(Deaths, of_processes_of_one_tenant_leave_the_other_alone) {
  const auto owner = connect();
  const std::string token = open(owner, "b").token;
  const pid_t process = in_process([&] {
    auto client = LeaseClient::connect(options.socket).value();
    static_cast<void>(client.attach(token).value());
    wait_for_word();
    return 7;
  });
  turn_until([&] { return status("b").processes.size() == 1; });
  const auto first = connect();
  static_cast<void>(open(first, "a"));
  EXPECT_EQ(refusal(connect(), lease::RevokeRequest{"a"}), "done");
  let_go();
  turn_until([&] { return status("b").processes.empty(); });
  EXPECT_EQ(end_of(process), 7 << 8);
}

// Each client process takes and gives at random; half of them are killed in the middle of it.
TEST_F(Deaths, of_64_processes_leave_nothing_behind) {
  server.reset();
  PlantedCard small(3);
  server = Server::start(options, small, {terms_of("a", {0, 1}, 1), terms_of("b", {2}, 2)}).value();
  auto owner_a = std::make_optional(connect());
  auto owner_b = std::make_optional(connect());
  const std::string tokens[] = {open(*owner_a, "a").token, open(*owner_b, "b").token};
  std::vector<pid_t> processes;
  for (std::uint32_t i = 0; i < 64; ++i) {
    processes.push_back(in_process([&, i] {
      auto client = LeaseClient::connect(options.socket).value();
      static_cast<void>(client.attach(tokens[i % 2]).value());
      std::mt19937 random(i);
      std::vector<color::LinearByte> firsts;
      for (int change = 0; change < 16; ++change) {
        if (random() % 3 != 0 || firsts.empty()) {
          const auto extent = client.take(1 + random() % (3 * step));
          if (extent) firsts.push_back(extent->first);
        } else {
          if (!client.give(firsts.back())) return 1;
          firsts.pop_back();
        }
      }
      if (i % 2 == 0) ::raise(SIGKILL);
      return 0;
    }));
  }
  std::size_t seen = 0;
  turn_until([&] {
    EXPECT_TRUE(prove(server->ledger().book()));
    int status = 0;
    while (::waitpid(-1, &status, WNOHANG) > 0) {
      EXPECT_TRUE(status == 0 || status == SIGKILL) << status;
      ++seen;
    }
    return seen == processes.size();
  });
  owner_a.reset();
  owner_b.reset();
  turn_until([&] { return server->idle() && server->connections() == 0; });
  for (const auto& [name, tenant] : server->ledger().book().tenants) {
    EXPECT_TRUE(tenant.holdings.empty()) << name;
  }
}

}  // namespace
}  // namespace demarc::serve
