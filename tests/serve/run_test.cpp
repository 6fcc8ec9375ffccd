// A server lives until it is told, and reads its configuration when it is told to.
#include "demarc/serve/run.hpp"

#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <fstream>

#include "confine_fixture.hpp"
#include "demarc/base/files.hpp"
#include "demarc/lease/sockets.hpp"
#include "fork_at_rest.hpp"
#include "server_fixture.hpp"
#include "signals.hpp"

namespace demarc::serve {
namespace {

using lease::LeaseClient;
using testing::HasSubstr;

class Running : public ServerTest {
 protected:
  // The server in a process of its own, which writes what it tells to a pipe.
  void SetUp() override {
    ASSERT_EQ(::pipe(lines_), 0);
    process_ = in_process([&] {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      // As run() does: from the socket on signals wait for the loop.
      const Signals signals(limit_);
      start();
      int reads = 0;
      const auto tell = [&](const std::string& line) {
        const std::string whole = line + "\n";
        static_cast<void>(!::write(lines_[1], whole.data(), whole.size()));
      };
      const auto result = serve_until_told(
          *server, signals,
          [&]() -> Result<std::vector<Terms>> {
            if (++reads == 2) return invalid_input("f.toml:1:1: wrong");
            return std::vector<Terms>{terms_of("b", {3}, 2, 2)};
          },
          tell, end_when_idle_, events_);
      server.reset();
      return result ? 0 : static_cast<int>(result.error().kind);
    });
    ::close(lines_[1]);
  }
  void TearDown() override { ::close(lines_[0]); }
  // Once the server listens.
  [[nodiscard]] LeaseClient client() const {
    for (int i = 0; i < 5000; ++i) {
      if (auto connected = LeaseClient::connect(options.socket)) return *std::move(connected);
      ::usleep(1000);
    }
    return LeaseClient::connect(options.socket).value();
  }
  [[nodiscard]] std::string line() const {
    std::string text;
    for (char c = 0;; text += c) {
      pollfd item{lines_[0], POLLIN, 0};
      if (::poll(&item, 1, 20'000) <= 0) {
        ADD_FAILURE() << "it says nothing any more";
        return text;
      }
      if (::read(lines_[0], &c, 1) != 1 || c == '\n') return text;
    }
  }

  std::optional<double> end_when_idle_;
  ServeEvents events_;
  double limit_ = 60;  // seconds
  int lines_[2] = {-1, -1};
  pid_t process_ = 0;
};

TEST_F(Running, ends_at_SIGTERM_with_the_programs_of_its_tenants) {
  auto owner = client();
  const std::string token = owner.open("a", "").value().token;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t program = in_process([&] {
    auto own = client();
    const bool attached = own.attach(token).has_value();
    static_cast<void>(!::write(ready[1], "x", 1));
    ::pause();
    return attached ? 0 : 1;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(process_, SIGTERM);
  EXPECT_EQ(end_of(program), SIGKILL);
  EXPECT_EQ(end_of(process_), 0);
  EXPECT_FALSE(std::filesystem::exists(options.socket));
  EXPECT_EQ(owner.list().error().kind, ErrorKind::missing_capability);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(Running, ends_at_SIGINT) {
  static_cast<void>(client());
  ::kill(process_, SIGINT);
  EXPECT_EQ(end_of(process_), 0);
}

TEST_F(Running, reads_its_configuration_again_at_SIGHUP) {
  auto own = client();
  ASSERT_TRUE(own.open("a", ""));
  ::kill(process_, SIGHUP);
  ASSERT_EQ(line(), "tenant 'a' is in use and stays as it is");
  ASSERT_EQ(line(), "the configuration was read again");
  EXPECT_EQ(own.list().value().tenants[1].tpcs, "3");
  ::kill(process_, SIGHUP);
  EXPECT_EQ(line(), "the configuration stays as it was: f.toml:1:1: wrong");
  EXPECT_EQ(own.list().value().tenants[1].tpcs, "3");
  ::kill(process_, SIGTERM);
  EXPECT_EQ(end_of(process_), 0);
}

class RunningWithMps : public Running {
 public:
  RunningWithMps() {
    options.mps_process = daemon_.get();
    options.end_left = [this](const std::string& tenant) -> Result<void> {
      const std::string words = "left of " + tenant + "\n";
      static_cast<void>(!::write(lines_[1], words.data(), words.size()));
      return check_failed("a child");
    };
  }

 protected:
  OwnedFile daemon_{::eventfd(0, EFD_CLOEXEC)};  // readable: it has ended
};

// A child of a program may have closed its connection.
TEST_F(RunningWithMps, ends_what_is_left_of_its_tenants_when_it_ends_after_the_daemon) {
  auto owner = std::make_optional(client());
  ASSERT_TRUE(owner->open("a", ""));
  ASSERT_EQ(::eventfd_write(daemon_.get(), 1), 0);
  while (owner->list().value().mps != "ended") ::usleep(1000);
  owner.reset();
  EXPECT_EQ(line(), "left of a");
  EXPECT_EQ(line(), "left of b");
  EXPECT_EQ(line(), "tenant 'a': a child; tenant 'b': a child");
  EXPECT_EQ(end_of(process_), 2 << 8);
}

TEST_F(RunningWithMps, ends_with_the_last_program_after_the_daemon) {
  auto owner = std::make_optional(client());
  ASSERT_TRUE(owner->open("a", ""));
  ASSERT_EQ(::eventfd_write(daemon_.get(), 1), 0);
  while (owner->list().value().mps != "ended") ::usleep(1000);
  EXPECT_THAT(client().open("a", "").error().message, HasSubstr("the daemon of MPS"));
  owner.reset();
  EXPECT_EQ(end_of(process_), 2 << 8) << "which tells systemd to start another one";
}

TEST(ServersOfAGroup, are_those_of_root) {
  const std::string path = test::fresh_folder("group") / "f.toml";
  ASSERT_TRUE(write_file(path, "group = \"root\"\n[tenants.a]\nsms = 1\ncolors = [0]\n"));
  const pid_t process = test::fork_at_rest();
  if (process == 0) {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(1);
    const auto refused = run({.config = path, .tell = [](const std::string&) {}});
    ::_exit(!refused && refused.error().kind == ErrorKind::missing_capability &&
                    refused.error().message.find("only a server of root") != std::string::npos
                ? 0
                : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
}

class RunningAndLooking : public Running {
 public:
  RunningAndLooking() {
    events_.looks = [this] { static_cast<void>(!::write(lines_[1], "look\n", 5)); };
  }
};

TEST_F(RunningAndLooking, looks_once_per_second_however_many_packets_come) {
  using TestClock = std::chrono::steady_clock;
  const auto begin = TestClock::now();
  auto own = client();
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(own.list());
  ::kill(process_, SIGTERM);
  EXPECT_EQ(end_of(process_), 0);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(TestClock::now() - begin).count();
  int looks = 0;
  while (line() == "look") ++looks;
  EXPECT_GE(looks, 1);
  EXPECT_LE(looks, seconds + 5);
}

class RunningWithoutClients : public Running {
 public:
  RunningWithoutClients() {
    events_.used = [this](bool) { ++turns_; };
    events_.looks = [this] {
      const std::string words = std::to_string(turns_) + "\n";
      static_cast<void>(!::write(lines_[1], words.data(), words.size()));
    };
  }

 protected:
  int turns_ = 0;
};

TEST_F(RunningWithoutClients, waits_in_its_turns) {
  int turns = 0;
  for (int looks = 0; looks < 3; ++looks) turns = std::atoi(line().c_str());
  EXPECT_GE(turns, 3);
  EXPECT_LT(turns, 100) << "and does not go round and round";
  ::kill(process_, SIGTERM);
  EXPECT_EQ(end_of(process_), 0);
}

class RunningWithChildren : public Running {
 public:
  RunningWithChildren() {
    events_.ends = [this] { static_cast<void>(!::write(lines_[1], "ends\n", 5)); };
    options.end_left = [](const std::string&) -> Result<void> { return check_failed("a child"); };
  }
};

TEST_F(RunningWithChildren, ends_with_a_check_that_failed_where_they_do_not_end) {
  static_cast<void>(client());
  ::kill(process_, SIGTERM);
  EXPECT_EQ(line(), "ends") << "before it ends programs, which takes time";
  EXPECT_EQ(end_of(process_), 3 << 8);
}

// The card is looked at once a second.
class RunningWhereTheCardDiesAtTheEnd : public RunningWithChildren {
 public:
  RunningWhereTheCardDiesAtTheEnd() {
    events_.ends = [this] {
      card.dead = "the card is lost";
      ::usleep(1'100'000);
    };
  }
};

TEST_F(RunningWhereTheCardDiesAtTheEnd, looks_for_what_is_left_of_its_tenants_all_the_same) {
  static_cast<void>(client());
  ::kill(process_, SIGTERM);
  EXPECT_EQ(end_of(process_), 3 << 8) << "a child has not ended";
}

class RunningWhereTheCardAloneDiesAtTheEnd : public RunningWhereTheCardDiesAtTheEnd {
 public:
  RunningWhereTheCardAloneDiesAtTheEnd() {
    options.end_left = [](const std::string&) { return Result<void>(); };
  }
};

TEST_F(RunningWhereTheCardAloneDiesAtTheEnd, says_that_it_was_lost) {
  static_cast<void>(client());
  ::kill(process_, SIGTERM);
  EXPECT_EQ(end_of(process_), 2 << 8) << "all programs have ended, but the card is lost";
}

class RunningForAWhile : public Running {
 public:
  RunningForAWhile() { end_when_idle_ = 0.2; }
};

TEST_F(RunningForAWhile, stays_for_whoever_is_connected_and_ends_afterwards) {
  auto own = std::make_optional(client());
  for (int i = 0; i < 30; ++i) {
    ::usleep(20000);
    ASSERT_TRUE(own->list()) << "a connection without a lease keeps it";
  }
  own.reset();
  EXPECT_EQ(end_of(process_), 0);
  EXPECT_FALSE(std::filesystem::exists(options.socket));
}

class ServedCards : public cuda::Confine {
 protected:
  // Of a server in a process of its own.
  [[nodiscard]] static std::string refusal(const fake::FakeConfig& config) {
    const auto folder = test::fresh_folder("served_card");
    EXPECT_TRUE(write_file(folder / "f.toml", "[tenants.a]\nsms = 1\ncolors = [0]\n"));
    cuda::Supervised::apart([&] {
      test::configure(config);
      ServePlan plan{folder / "f.toml"};
      plan.socket = folder / "socket";
      plan.tell = [](const std::string&) {};
      const auto ended = run(plan);
      static_cast<void>(write_file(
          folder / "said", ended ? "ended"
                                 : fmt::format("{} {}", static_cast<int>(ended.error().kind),
                                               ended.error().message)));
      return 0;
    });
    return read_file(folder / "said").value_or("nothing");
  }
};

// Its programs and those of the tenants would take turns.
TEST_F(ServedCards, are_served_by_no_client_of_another_daemon_of_MPS) {
  auto config = fake::small_gpu();
  config.mps_attribute = 1;
  EXPECT_THAT(refusal(config), HasSubstr("this process is itself a client of an MPS daemon"));
}

TEST_F(ServedCards, are_in_the_compute_mode_that_lets_several_programs_in) {
  fake::FakeConfig config = fake::small_gpu();
  config.compute_mode = 3;
  EXPECT_THAT(refusal(config), testing::StartsWith("2 "));
  EXPECT_THAT(refusal(config), HasSubstr("is in compute mode EXCLUSIVE_PROCESS, in which tenants"));
  EXPECT_THAT(refusal(config), HasSubstr("-c DEFAULT"));
  config.compute_mode = 2;
  EXPECT_THAT(refusal(config), HasSubstr("is in compute mode PROHIBITED"));
  config.compute_mode = 0;
  EXPECT_THAT(refusal(config), testing::Not(HasSubstr("compute mode")));
}

// It is read again at SIGHUP, which a pipe would answer once.
TEST(ServePlans, are_of_regular_files) {
  for (const std::string& path : {std::string("/dev/null"), test::fresh_folder("plan").string()}) {
    const auto refused = plan_config({path});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_EQ(refused.error().message,
              path + ": a regular file was expected, because SIGHUP reads it again");
  }
}

TEST(ServePlans, put_the_command_line_before_the_configuration) {
  const std::string path = test::fresh_folder("plan") / "f.toml";
  ASSERT_TRUE(write_file(path,
                         "card = 2\nsocket = \"/run/x\"\nmps = \"on\"\n[tenants.a]\nsms = "
                         "1\ncolors = [0]\n"));
  const auto own = plan_config({path}).value();
  EXPECT_EQ(own.card, 2U);
  EXPECT_EQ(own.socket, "/run/x");
  EXPECT_EQ(own.mps, MpsUse::on);
  const auto other = plan_config({path, 0, "/run/y", MpsUse::off}).value();
  EXPECT_EQ(other.card, 0U);
  EXPECT_EQ(other.socket, "/run/y");
  EXPECT_EQ(other.mps, MpsUse::off);
  ASSERT_TRUE(write_file(path, "[tenants.a]\nsms = 1\ncolors = [0]\n"));
  EXPECT_EQ(plan_config({path}).value().socket, lease::default_socket());
}

}  // namespace
}  // namespace demarc::serve
