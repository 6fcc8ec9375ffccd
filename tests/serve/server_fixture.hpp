// A server on a planted card, which takes its turns while a test waits for an answer.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>

#include "demarc/lease/client.hpp"
#include "demarc/serve/server.hpp"
#include "fork_at_rest.hpp"
#include "paths.hpp"
#include "planted_card.hpp"

namespace demarc::serve {

inline Terms terms_of(const std::string& name, gpu::TpcSet tpcs, std::uint64_t colors,
                      std::optional<std::uint32_t> domain = {}) {
  return {name,
          tpcs,
          {colors, 8},
          domain,
          PlantedCard::share_bytes,
          PlantedCard::share_bytes,
          3 * lease::extent_step};
}

class ServerTest : public testing::Test {
 protected:
  static constexpr std::uint64_t step = lease::extent_step;

  void start() {
    server = Server::start(options, card, {terms_of("a", {0, 1}, 1, 1), terms_of("b", {2}, 2, 2)})
                 .value();
  }
  static bool readable(int file) {
    pollfd item{file, POLLIN, 0};
    return ::poll(&item, 1, 0) > 0;
  }
  // Until `done`; the test fails where that does not come.
  void turn_until(const std::function<bool()>& done) const {
    for (int i = 0; i < 2000 && !done(); ++i) ASSERT_TRUE(server->turn(10));
    ASSERT_TRUE(done()) << "the server does nothing any more";
  }
  [[nodiscard]] lease::PacketSocket connect() const {
    return lease::PacketSocket::connect(options.socket).value();
  }
  [[nodiscard]] lease::Packet next(const lease::PacketSocket& client) const {
    turn_until([&] { return readable(client.file()); });
    if (HasFatalFailure()) return {};
    auto received = client.receive().value();
    EXPECT_TRUE(received.packet) << "the server ended the connection";
    return received.packet ? std::move(*received.packet) : lease::Packet{};
  }
  [[nodiscard]] lease::Packet ask(const lease::PacketSocket& client, std::string_view text) const {
    EXPECT_TRUE(client.send(text).value());
    return next(client);
  }
  template <class Answer>
  [[nodiscard]] Result<Answer> ask(const lease::PacketSocket& client,
                                   const lease::Request& request) const {
    return lease::parse_answer<Answer>(ask(client, to_text(request)).text);
  }
  [[nodiscard]] std::string refusal(const lease::PacketSocket& client,
                                    const lease::Request& request) const {
    const auto answer = ask<lease::Done>(client, request);
    return answer ? "done" : answer.error().message;
  }
  [[nodiscard]] lease::Opened open(const lease::PacketSocket& client,
                                   const std::string& tenant = "a",
                                   const std::string& control = "") const {
    return ask<lease::Opened>(client, lease::OpenRequest{tenant, control}).value();
  }
  [[nodiscard]] lease::Attached attach(const lease::PacketSocket& client,
                                       const std::string& token) const {
    return ask<lease::Attached>(client, lease::AttachRequest{token}).value();
  }
  [[nodiscard]] lease::Extent take(const lease::PacketSocket& client, std::uint64_t bytes) const {
    return ask<lease::Extent>(client, lease::TakeRequest{bytes}).value();
  }
  [[nodiscard]] lease::TenantStatus status(const std::string& tenant) const {
    for (auto& status : server->status()) {
      if (status.name == tenant) return status;
    }
    ADD_FAILURE() << "there is no tenant " << tenant;
    return {};
  }
  // A process that does this; what it returns is its exit code, 99 where it did not find what it
  // expected.
  static pid_t in_process(const std::function<int()>& work) {
    const pid_t process = test::fork_at_rest();
    if (process != 0) return process;
    const int code = work();
    ::_exit(testing::Test::HasFailure() ? 99 : code);
  }
  // For whatever parent: "PID (NAME) STATE ...".
  static bool is_alive(pid_t process) {
    std::string facts;
    std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), facts);
    const std::size_t name = facts.rfind(')');
    // A process that has ended is a zombie, or dead (X) while its exit code is taken.
    return name != std::string::npos && facts.at(name + 2) != 'Z' && facts.at(name + 2) != 'X';
  }
  static int end_of(pid_t process) {
    int status = 0;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    return status;
  }

  PlantedCard card;
  std::vector<std::string> told;
  std::vector<pid_t> ended_work;  // whose work on the card was ended, before they were killed
  bool work_ends = true;
  std::vector<std::string> left_of;  // whose other processes were ended then
  bool left_ends = true;
  std::atomic<int> left_stays{0};  // so many looks from now on find something that does not end
  std::atomic<bool> looks_for_left{false};  // while it is so, nothing of that returns
  std::atomic<bool> mps_hangs{false};       // while it is so, no work is ended
  bool may_be_dead = false;                 // whose work is ended
  ServerOptions options{.socket = test::fresh_folder("serve") / "socket",
                        .group = {},
                        .mps = "/run/mps",
                        .user = ::geteuid(),
                        .scrub_bytes = 4 * step,
                        .proof = prove,
                        .tell = [this](const std::string& line) { told.push_back(line); },
                        .end_work =
                            [this](const std::vector<WorkTarget>& targets) {
                              std::vector<Result<void>> results(targets.size());
                              while (mps_hangs) ::usleep(1000);
                              for (std::size_t i = 0; i < targets.size(); ++i) {
                                EXPECT_TRUE(may_be_dead || is_alive(targets[i].process))
                                    << "killed";
                                ended_work.push_back(targets[i].process);
                                if (!work_ends) results[i] = check_failed("no word of MPS");
                              }
                              return results;
                            },
                        .end_left = [this](const std::string& tenant) -> Result<void> {
                          for (const pid_t killed : ended_work) {
                            EXPECT_TRUE(may_be_dead || !is_alive(killed)) << "not killed yet";
                          }
                          while (looks_for_left) ::usleep(1000);
                          left_of.push_back(tenant);
                          if (left_stays.exchange(std::max(0, left_stays - 1)) == 0 && left_ends) {
                            return {};
                          }
                          return check_failed("process 4711 (a child) has not ended");
                        },
                        .hurry = [this](double) { mps_hangs = false; }};
  std::unique_ptr<Server> server;
};

}  // namespace demarc::serve
