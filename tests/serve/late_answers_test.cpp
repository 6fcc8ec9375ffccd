// Answers that cannot be sent at once, or that are not taken.
#include "answering.hpp"

namespace demarc::serve {
namespace {

class LateAnswers : public Answering {
 protected:
  // Answers that wait for one who reads none, before the server waits with the next one.
  [[nodiscard]] int room() const {
    const auto sleeper = connect();
    EXPECT_NE(ask_until_full(sleeper, question), 0);
    int answers = 0;
    while (readable(sleeper.file()) && sleeper.receive()->packet) ++answers;
    return answers;
  }
  // A connection that has no room for an answer any more.
  [[nodiscard]] lease::PacketSocket full(int answers) const {
    auto client = connect();
    for (int i = 0; i < answers; ++i) {
      EXPECT_TRUE(client.send(to_text(question)).value());
      EXPECT_TRUE(server->turn(10));
      if (i == 0) {
        EXPECT_TRUE(server->turn(10));  // the first one let it in
      }
    }
    return client;
  }
  const lease::Request question = lease::TakeRequest{1};
};

TEST_F(LateAnswers, that_bring_files_are_sent_as_soon_as_there_is_room) {
  const int answers = room();
  const auto client = full(answers);
  ASSERT_TRUE(client.send(to_text(lease::Request(lease::OpenRequest{"a", ""}))).value());
  ASSERT_TRUE(server->turn(10));
  ASSERT_EQ(status("a").leases, 1U);
  for (int i = 0; i < answers; ++i) ASSERT_TRUE(client.receive()->packet);
  ASSERT_FALSE(readable(client.file())) << "there was no room";
  const OwnedFile timer = ten_seconds();
  while (!readable(client.file())) ASSERT_FALSE(server->turn(-1, timer.get()).value());
  EXPECT_TRUE(lease::parse_answer<lease::Opened>(client.receive()->packet->text));
}

// Its process lives, so the connection is known on.
TEST_F(LateAnswers, that_nobody_takes_leave_no_files_open) {
  const int answers = room();
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  server.reset();
  options.locks = [&] { return std::vector<int>{pipe[1]}; };
  options.reading_seconds = 0.01;
  start();
  const auto owner = connect();
  const std::string token = open(owner).token;
  const auto client = full(answers);
  ASSERT_TRUE(client.send(to_text(lease::Request(lease::AttachRequest{token}))).value());
  turn_until([&] { return !told.empty(); });
  EXPECT_EQ(status("a").processes.size(), 1U);
  ::close(pipe[1]);
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0) << "the server has a copy";
  ::close(pipe[0]);
}

TEST_F(LateAnswers, to_who_revoked_a_tenant_are_sent_as_soon_as_its_programs_have_ended) {
  looks_for_left = true;
  const auto asker = connect();
  ask_only(asker, lease::RevokeRequest{"b"});
  ASSERT_FALSE(server->ended());
  looks_for_left = false;
  turn_until([&] { return server->ended(); });
  EXPECT_TRUE(readable(asker.file())) << "not in the next turn";
}

}  // namespace
}  // namespace demarc::serve
