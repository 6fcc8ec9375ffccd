// A server that answers, and what its tests ask of it.
#pragma once

#include <fcntl.h>
#include <sys/timerfd.h>

#include "server_fixture.hpp"

namespace demarc::serve {

class Answering : public ServerTest {
 protected:
  void SetUp() override { start(); }
  void ask_only(const lease::PacketSocket& client, const lease::Request& request) const {
    ASSERT_TRUE(client.send(to_text(request)).value());
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(server->turn(1));
  }
  // Readable when they are over: for a turn that should have ended long before.
  [[nodiscard]] static OwnedFile ten_seconds() { return timer_of({10, 0}); }
  [[nodiscard]] static OwnedFile timer_of(timespec time) {
    OwnedFile timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    const itimerspec limit{{}, time};
    EXPECT_EQ(::timerfd_settime(timer.get(), 0, &limit, nullptr), 0);
    return timer;
  }
  // Asks until the server reads no more, because it cannot answer; how often.
  [[nodiscard]] int ask_until_full(const lease::PacketSocket& client,
                                   const lease::Request& question) const {
    EXPECT_EQ(::fcntl(client.file(), F_SETFL, O_NONBLOCK), 0);
    for (int asked = 0; asked < 100'000; ++asked) {
      if (!client.send(to_text(question)).value_or(false)) return asked;
      EXPECT_TRUE(server->turn(0));
    }
    ADD_FAILURE() << "it answers on though nobody reads";
    return 0;
  }
  // A program with the lease of this token that stays until it is killed.
  [[nodiscard]] pid_t program_with(const std::string& token) {
    const pid_t process = in_process([&] {
      auto client = lease::LeaseClient::connect(options.socket).value();
      static_cast<void>(client.attach(token).value());
      ::pause();
      return 0;
    });
    turn_until([&] { return status("a").processes.size() == 1; });
    return process;
  }
  [[nodiscard]] static std::string words(const lease::Packet& packet) {
    const auto answer = lease::parse_answer<lease::Done>(packet.text);
    return answer ? "done" : answer.error().message;
  }
};

}  // namespace demarc::serve
