// The server answers, whatever clients, programs and MPS do meanwhile.
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <random>

#include "answering.hpp"

namespace demarc::serve {
namespace {

using color::LinearByte;
using lease::LeaseClient;
using testing::HasSubstr;

TEST_F(Answering, goes_on_while_MPS_ends_work) {
  const auto owner = connect();
  const auto process = connect();
  const std::string token = open(owner).token;
  static_cast<void>(attach(process, token));
  mps_hangs = true;
  const auto asking = connect();
  ask_only(asking, lease::EndWorkRequest{});
  EXPECT_EQ(take(process, 1).bytes, step);
  const auto second = connect();
  EXPECT_EQ(refusal(second, lease::EndWorkRequest{}),
            fmt::format("process {} has asked this already", ::getpid()));
  EXPECT_FALSE(readable(asking.file()));
  EXPECT_EQ(server->all_ended().error().message, "1 processes with a lease have not ended");
  ask_only(asking, lease::ListRequest{});
  EXPECT_FALSE(readable(asking.file())) << "what it asks meanwhile waits";
  mps_hangs = false;
  EXPECT_EQ(words(next(asking)), "done");
  EXPECT_EQ(lease::parse_answer<lease::ListHead>(next(asking).text)->tenants, 2U);
  EXPECT_EQ(ended_work, std::vector<pid_t>{::getpid()});
}

TEST_F(Answering, goes_on_while_a_tenant_is_revoked) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = program_with(token);
  mps_hangs = true;
  const auto asking = connect();
  ask_only(asking, lease::RevokeRequest{"a"});
  EXPECT_EQ(open(connect(), "b").lease.tenant, "b");
  EXPECT_TRUE(status("a").revoked);
  EXPECT_TRUE(is_alive(process));
  EXPECT_EQ(server->all_ended().error().message,
            "1 processes with a lease have not ended; tenant 'a': whether all of its programs have "
            "ended is not known yet");
  mps_hangs = false;
  EXPECT_EQ(words(next(asking)), "done");
  EXPECT_EQ(end_of(process), SIGKILL);
}

TEST_F(Answering, ends_the_work_of_no_process_for_another_one) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = program_with(token);
  EXPECT_EQ(refusal(connect(), lease::EndWorkRequest{}),
            fmt::format("process {} has no lease: it has no work that this server could end",
                        ::getpid()));
  EXPECT_TRUE(ended_work.empty());
  EXPECT_EQ(::kill(process, SIGKILL), 0);
  EXPECT_EQ(end_of(process), SIGKILL);
}

TEST_F(Answering, is_given_up_by_one_who_asked_to_end_work_and_has_gone) {
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  mps_hangs = true;
  auto asking = std::make_optional(connect());
  ask_only(*asking, lease::EndWorkRequest{});
  const std::size_t before = server->connections();
  asking.reset();
  turn_until([&] { return server->connections() == before - 1; });
  mps_hangs = false;
  EXPECT_EQ(take(process, 1).bytes, step);
}

TEST_F(Answering, lets_wait_for_zeros_only_what_they_can_help) {
  server.reset();
  options.scrub_bytes = step;
  start();
  std::vector<lease::PacketSocket> owners;
  std::vector<lease::PacketSocket> users;
  for (const char* tenant : {"a", "b"}) {
    owners.push_back(connect());
    users.push_back(connect());
    static_cast<void>(attach(users.back(), open(owners.back(), tenant).token));
    static_cast<void>(take(users.back(), 8 * step));
  }
  ASSERT_EQ(refusal(users[1], lease::GiveRequest{}), "done");
  EXPECT_THAT(refusal(users[0], lease::TakeRequest{step}), HasSubstr("the longest free run"))
      << "bytes of another tenant";
  EXPECT_EQ(refusal(users[1], lease::TakeRequest{0}), "0 bytes were asked for");
  EXPECT_GT(status("b").unclean_bytes, step) << "none of them has waited";
}

// It lives, so what it has stays its own; what it asked for is not given to it any more.
TEST_F(Answering, gives_nothing_to_a_connection_that_ended_while_it_waited) {
  server.reset();
  options.scrub_bytes = step;
  start();
  const auto owner = connect();
  auto process = std::make_optional(connect());
  static_cast<void>(attach(*process, open(owner).token));
  static_cast<void>(take(*process, 8 * step));
  ASSERT_EQ(refusal(*process, lease::GiveRequest{}), "done");
  ASSERT_TRUE(process->send(to_text(lease::Request(lease::TakeRequest{8 * step}))).value());
  ASSERT_TRUE(server->turn(10));
  ASSERT_NE(status("a").unclean_bytes, 0U) << "it waits for zeros";
  process.reset();
  turn_until([&] { return status("a").unclean_bytes == 0; });
  ASSERT_TRUE(server->turn(0));
  EXPECT_EQ(status("a").given_bytes, 0U);
  EXPECT_THAT(status("a").processes, testing::ElementsAre(::getpid()));
}

TEST_F(Answering, ends_work_of_a_process_whose_connection_ended_while_it_asked_that_before) {
  const auto owner = connect();
  auto process = std::make_optional(connect());
  static_cast<void>(attach(*process, open(owner).token));
  mps_hangs = true;
  ask_only(*process, lease::EndWorkRequest{});
  process.reset();
  ASSERT_TRUE(server->turn(10));
  mps_hangs = false;
  turn_until([&] { return ended_work.size() == 1; });
  EXPECT_EQ(refusal(connect(), lease::EndWorkRequest{}), "done");
}

// What MPS is told is the number of a process: it may be another's by now.
TEST_F(Answering, ends_the_work_of_no_process_that_has_ended) {
  int numbers[2];
  ASSERT_EQ(::pipe(numbers), 0);
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = in_process([&] {
    auto user = LeaseClient::connect(options.socket).value();
    static_cast<void>(user.attach(token).value());
    const auto client = lease::PacketSocket::connect(options.socket).value();
    EXPECT_TRUE(client.send(to_text(lease::Request(lease::ListRequest{}))).value());
    static_cast<void>(client.receive());  // from here on the server knows the connection
    if (::fork() != 0) return 0;
    char byte = 0;
    static_cast<void>(!::read(numbers[0], &byte, 1));  // the parent has ended
    EXPECT_TRUE(client.send(to_text(lease::Request(lease::EndWorkRequest{}))).value());
    // Behind the two tenants of the list.
    std::string last;
    for (int i = 0; i < 3; ++i) last = client.receive().value().packet.value().text;
    ::_exit(last.find("has ended: its number may be another's") != std::string::npos ? 0 : 1);
  });
  while (is_alive(process)) ASSERT_TRUE(server->turn(1));
  EXPECT_EQ(end_of(process), 0);
  ASSERT_EQ(::write(numbers[1], "x", 1), 1);
  // The child ends, and with it the last copy of the connections.
  turn_until([&] { return server->connections() == 1; });
  EXPECT_TRUE(ended_work.empty());
  for (const int end : numbers) ::close(end);
}

TEST_F(Answering, takes_no_descriptors_and_closes_them) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  const auto client = connect();
  ASSERT_TRUE(client.send(to_text(lease::Request(lease::ListRequest{})), std::span(&pipe[1], 1)));
  ::close(pipe[1]);
  EXPECT_THAT(words(next(client)), HasSubstr("a question with descriptors came"));
  turn_until([&] { return server->connections() == 0; });
  char byte = 0;
  while (::read(pipe[0], &byte, 1) < 0) ::usleep(1000);
  ::close(pipe[0]);
}

TEST_F(Answering, sends_pages_to_one_who_has_read_those_before) {
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  const lease::Request all = lease::PagesRequest{{{}, lease::packet_files}};
  ASSERT_TRUE(process.send(to_text(all)).value());
  ASSERT_TRUE(process.send(to_text(all)).value());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(server->turn(1));
  EXPECT_EQ(next(process).files.size(), lease::packet_files);
  EXPECT_THAT(words(next(process)), HasSubstr("read the answer before"));
  EXPECT_EQ(ask(process, to_text(all)).files.size(), lease::packet_files);
}

TEST_F(Answering, lets_in_no_program_once_the_daemon_of_MPS_has_ended) {
  server.reset();
  const OwnedFile daemon(::eventfd(0, EFD_CLOEXEC));
  options.mps_process = daemon.get();
  start();
  const auto owner = connect();
  const std::string token = open(owner).token;
  EXPECT_EQ(ask<lease::ListHead>(connect(), lease::ListRequest{})->mps, "on");
  ASSERT_EQ(::eventfd_write(daemon.get(), 1), 0);
  turn_until([&] { return server->mps_ended(); });
  EXPECT_THAT(told, testing::ElementsAre(HasSubstr("the daemon of MPS has ended")));
  EXPECT_THAT(refusal(connect(), lease::OpenRequest{"a", ""}), HasSubstr("daemon of MPS"));
  EXPECT_THAT(refusal(connect(), lease::AttachRequest{token}), HasSubstr("daemon of MPS"));
  EXPECT_EQ(ask<lease::ListHead>(connect(), lease::ListRequest{})->mps, "ended");
  EXPECT_EQ(told.size(), 1U) << "it is said once";
}

TEST_F(Answering, says_that_there_is_no_MPS) {
  server.reset();
  options.mps = "";
  start();
  EXPECT_EQ(ask<lease::ListHead>(connect(), lease::ListRequest{})->mps, "off");
}

// The question may be there before the server refuses the one who asks.
TEST_F(Answering, tells_one_that_it_refuses_why) {
  server.reset();
  options.user = ::geteuid() + 1;
  start();
  const auto client = connect();
  ASSERT_TRUE(client.send(to_text(lease::Request(lease::ListRequest{}))).value());
  EXPECT_THAT(words(next(client)), HasSubstr("may not have leases of this server"));
  turn_until([&] { return readable(client.file()); });
  EXPECT_TRUE(client.receive()->ended);
  const auto late = connect();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(server->turn(1));
  EXPECT_TRUE(late.send(to_text(lease::Request(lease::ListRequest{}))).value());
  EXPECT_THAT(words(next(late)), HasSubstr("may not have leases of this server"));
  EXPECT_EQ(server->connections(), 0U);
}

TEST_F(Answering, ends_the_connection_of_one_who_does_not_take_its_answers) {
  server.reset();
  options.reading_seconds = 0.01;
  start();
  const auto sleeper = connect();
  ASSERT_NE(ask_until_full(sleeper, lease::TakeRequest{1}), 0);
  turn_until([&] { return server->connections() == 0; });
  EXPECT_THAT(told,
              testing::ElementsAre(fmt::format(
                  "process {} does not take its answers: its connection is ended", ::getpid())));
  EXPECT_EQ(open(connect()).lease.tenant, "a");
}

// Its process lives, so the connection is known on; nothing of it is due.
TEST_F(Answering, waits_in_its_turns_though_a_process_took_no_answers) {
  server.reset();
  options.reading_seconds = 0.01;
  start();
  const auto owner = connect();
  const auto sleeper = connect();
  static_cast<void>(attach(sleeper, open(owner).token));
  ASSERT_NE(ask_until_full(sleeper, lease::GiveRequest{LinearByte(1)}), 0);
  turn_until([&] { return !told.empty(); });
  const OwnedFile timer = timer_of({0, 1'000'000});
  EXPECT_TRUE(server->turn(-1, timer.get()).value()) << "it was not the timer that ended the turn";
}

TEST_F(Answering, keeps_the_connection_of_one_who_takes_its_answers_late) {
  const auto sleeper = connect();
  const int asked = ask_until_full(sleeper, lease::TakeRequest{1});
  ASSERT_NE(asked, 0);
  for (int i = 0; i < asked; ++i) EXPECT_THAT(words(next(sleeper)), HasSubstr("attach to a lease"));
  EXPECT_EQ(open(sleeper).lease.tenant, "a");
  EXPECT_TRUE(told.empty());
}

TEST_F(Answering, ends_no_connection_for_answers_that_were_taken_in_time) {
  for (int patience_ms = 50;; patience_ms *= 2) {
    server.reset();
    options.reading_seconds = patience_ms / 1000.0;
    start();
    const auto reader = connect();
    int asked = ask_until_full(reader, lease::TakeRequest{1});
    ASSERT_NE(asked, 0);
    bool all = true;
    for (; all && asked > 0; --asked) {
      turn_until([&] { return readable(reader.file()); });
      all = reader.receive()->packet.has_value();
    }
    if (!all) continue;  // this machine took longer
    const OwnedFile timer = timer_of({patience_ms / 1000, patience_ms % 1000 * 1'000'000 + 1});
    while (!server->turn(-1, timer.get()).value()) {
    }
    ASSERT_TRUE(server->turn(0));
    EXPECT_EQ(server->connections(), 1U);
    EXPECT_EQ(open(reader).lease.tenant, "a");
    return;
  }
}

TEST_F(Answering, lets_sixteen_in_a_turn_so_that_those_who_are_there_are_answered) {
  const auto first = connect();
  ASSERT_TRUE(server->turn(10));
  std::vector<lease::PacketSocket> many;
  for (int i = 0; i < 40; ++i) many.push_back(connect());
  ASSERT_TRUE(first.send(to_text(lease::Request(lease::ListRequest{}))).value());
  ASSERT_TRUE(server->turn(10));
  EXPECT_TRUE(readable(first.file()));
  EXPECT_EQ(server->connections(), 1U + 16U);
  turn_until([&] { return server->connections() == 1 + many.size(); });
}

// A turn without a limit ends when there is something to do.
TEST_F(Answering, does_what_is_due_though_nobody_asks_anything) {
  server.reset();
  options.scrub_bytes = step;
  start();
  const OwnedFile timer = ten_seconds();
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  static_cast<void>(take(process, 8 * step));
  ASSERT_EQ(refusal(process, lease::GiveRequest{}), "done");
  while (status("a").unclean_bytes != 0) {
    const bool timed_out = server->turn(-1, timer.get()).value();
    ASSERT_FALSE(timed_out) << "bytes wait for zeros";
  }
}

class Refusing : public Answering {
 protected:
  void SetUp() override {
    options.user = ::geteuid() + 1;
    options.farewell_seconds = 1000;
  }
  static bool hung_up(const lease::PacketSocket& client) {
    pollfd item{client.file(), POLLIN, 0};
    return ::poll(&item, 1, 0) > 0 && (item.revents & POLLHUP) != 0;
  }
};

TEST_F(Refusing, ends_the_connection_of_one_who_was_told_why_and_says_nothing) {
  options.farewell_seconds = 0.01;
  start();
  const auto client = connect();
  const OwnedFile timer = ten_seconds();
  while (!hung_up(client)) ASSERT_FALSE(server->turn(-1, timer.get()).value());
  EXPECT_THAT(words(*client.receive()->packet), HasSubstr("may not have leases of this server"));
  EXPECT_THAT(told, testing::ElementsAre(HasSubstr("may not have leases of this server")))
      << "that it was refused is said, and not that it takes no answers";
}

TEST_F(Refusing, says_why_in_the_turn_in_which_one_has_come) {
  start();
  const auto client = connect();
  ASSERT_TRUE(server->turn(10));
  EXPECT_TRUE(readable(client.file()));
}

TEST_F(Refusing, waits_for_no_more_than_256_to_read_why) {
  start();
  std::vector<lease::PacketSocket> clients;
  for (int i = 0; i < 257; ++i) {
    clients.push_back(connect());
    turn_until([&] { return readable(clients.back().file()); });
  }
  EXPECT_FALSE(hung_up(clients.front()));
  EXPECT_FALSE(hung_up(clients[255]));
  EXPECT_TRUE(hung_up(clients[256]));
  EXPECT_THAT(words(*clients[256].receive()->packet), HasSubstr("may not have leases"));
}

class HostileClients : public Answering {
 protected:
  void hostile_client(unsigned seed, const std::string& token) const {
    std::mt19937 random(seed);
    const auto any = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
    const std::string numbers[] = {"0",
                                   "-1",
                                   "2097152",
                                   "9223372036854775807",
                                   "18446744073709551615",
                                   "1.5",
                                   "1e308",
                                   "null",
                                   "true",
                                   "[]",
                                   "{}",
                                   "\"a\"",
                                   "\"\\u0000\""};
    const std::string words[] = {"open", "attach", "pages", "take", "give",
                                 "list", "grow",   "move",  "slo",  "end-work"};
    const auto question = [&]() -> std::string {
      switch (any(8)) {
        case 0:
          return std::string(1 + any(60000), '[');
        case 1:
          return std::string(lease::packet_bytes + 1, 'x');
        case 2:
          return to_text(lease::Request(lease::AttachRequest{token}));
        case 3:
          return to_text(lease::Request(lease::TakeRequest{any(9) * step}));
        case 4:
          return to_text(
              lease::Request(lease::PagesRequest{{color::ArenaPage(any(450)), any(202)}}));
        case 5:
          return to_text(lease::Request(lease::GiveRequest{LinearByte(any(9) * step)}));
        default:
          return fmt::format(R"({{"do":"{}","tenant":{},"bytes":{},"first":{}}})", words[any(10)],
                             numbers[any(13)], numbers[any(13)], numbers[any(13)]);
      }
    };
    for (int life = 0; life < 5; ++life) {
      const auto client = lease::PacketSocket::connect(options.socket).value();
      for (int i = 0; i < 12; ++i) {
        const std::string text = question();
        const std::vector<int> files(any(10) == 0 ? 1 + any(250) : 0, client.file());
        send_any(client.file(), text, files);
        if (any(10) < 7 && client.wait(0.05)) static_cast<void>(client.receive());
        if (any(60) == 0) ::raise(SIGKILL);
      }
    }
  }
  // More, and longer, than a packet may have.
  static void send_any(int socket, const std::string& text, const std::vector<int>& files) {
    iovec data{const_cast<char*>(text.data()), text.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    std::vector<char> control(CMSG_SPACE(files.size() * sizeof(int)));
    if (!files.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
      std::memcpy(CMSG_DATA(part), files.data(), files.size() * sizeof(int));
    }
    static_cast<void>(::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
};

// Clients that send anything, die anywhere and read nothing.
TEST_F(HostileClients, are_survived) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  constexpr unsigned seed = 20261128;
  std::vector<pid_t> processes;
  for (unsigned i = 0; i < 24; ++i) {
    processes.push_back(in_process([&, i] {
      hostile_client(seed + i, token);
      return 0;
    }));
  }
  std::size_t seen = 0;
  const auto count_ended = [&] {
    int status = 0;
    while (::waitpid(-1, &status, WNOHANG) > 0) ++seen;
    return seen == processes.size();
  };
  while (!count_ended()) {
    ASSERT_TRUE(server->turn(10));
    ASSERT_TRUE(prove(server->ledger().book()));
  }
  turn_until([&] { return server->connections() == 1 && status("a").given_bytes == 0; });
  EXPECT_EQ(status("a").leases, 1U);
  EXPECT_EQ(ask<lease::ListHead>(connect(), lease::ListRequest{})->tenants, 2U);
}

}  // namespace
}  // namespace demarc::serve
