// A signal that ends a tenant's process ends first what the process has on the card, and then the
// process by what it does by default.
#include <gmock/gmock.h>

#include "tenant_programs.hpp"

namespace demarc::serve {
namespace {

using cuda::complain;
using test::Supervised;
using testing::HasSubstr;

class SignalsOfTenants : public TenantPrograms {
 protected:
  // The exit code of a program of tenant a.
  int run(const std::vector<std::string>& steps) {
    std::filesystem::remove(ended);
    return Supervised::apart([&] {
      const auto outcome = run_confined(plan_of("a", steps));
      if (!outcome) return complain(outcome.error().message);
      return outcome->program_exit_code;
    });
  }
  // What the server noted: the processes whose work it was asked to end, one a line.
  [[nodiscard]] std::string asked() const { return read_file(ended).value_or(""); }
  // The number of the process that said so last.
  [[nodiscard]] std::string number() const {
    const std::string log = program.log();
    return log.substr(log.rfind("process ") + 8);
  }
  std::string ended = socket + ".ended";
  std::string hold = socket + ".hold";  // while it is there the server does not answer
};

TEST_F(SignalsOfTenants, end_their_work_on_the_card_first) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  for (const int signal :
       {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31}) {
    const std::string text = std::to_string(signal);
    // A sanitizer has taken some.
    EXPECT_EQ(run({"default=" + text, "context", "count", "process", "die=" + text, "pause"}),
              128 + signal);
    EXPECT_EQ(asked(), number()) << signal;
  }
  EXPECT_EQ(run({"context", "count", "process", "abort"}), 128 + SIGABRT);
  EXPECT_EQ(asked(), number());
  EXPECT_EQ(run({"context", "count", "die=9"}), 128 + SIGKILL);
  EXPECT_EQ(asked(), "") << "nobody can take it";
  EXPECT_EQ(server.end(), 0);
}

TEST_F(SignalsOfTenants, do_not_where_the_program_takes_them_or_a_child_dies) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(run({"ignore=15", "take-own=2", "context", "die=15", "die=2", "die-in-child=1",
                 "die-in-child=6", "count"}),
            0);
  EXPECT_THAT(program.log(), testing::EndsWith("own\nchild 1\nchild 6\ncount right\n"));
  EXPECT_EQ(asked(), "");
  EXPECT_EQ(server.end(), 0);
}

TEST_F(SignalsOfTenants, let_no_call_begin_any_more) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  ASSERT_TRUE(write_file(hold, ""));
  EXPECT_EQ(run({"context", "count", "die-beside-calls=15", socket}), 128 + SIGTERM);
  EXPECT_THAT(program.log(), testing::EndsWith("count right\ncalls stopped\n"));
  EXPECT_EQ(server.end(), 0);
}

// The driver ends nothing of a client whose thread is stopped inside of it.
TEST_F(SignalsOfTenants, let_a_call_go_on_that_they_interrupt_and_not_return) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  ASSERT_TRUE(write_file(hold, ""));
  EXPECT_EQ(run({"context", "count", "die-in-a-call=15", socket}), 128 + SIGTERM);
  EXPECT_THAT(program.log(), testing::EndsWith("count right\nheld\n"));
  EXPECT_EQ(server.end(), 0);
}

TEST_F(SignalsOfTenants, ask_once_and_the_first_of_them_ends_the_process) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  for (const int first : {SIGTERM, SIGABRT}) {
    for (const char* second : {"2", "6"}) {
      ASSERT_TRUE(write_file(hold, ""));
      EXPECT_EQ(run({"context", "count", "process", "die-twice=" + std::to_string(first), socket,
                     second}),
                128 + first)
          << second;
      EXPECT_EQ(asked(), number());
    }
  }
  EXPECT_EQ(server.end(), 0);
}

TEST_F(SignalsOfTenants, say_where_the_server_ends_nothing) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  ASSERT_TRUE(write_file(socket + ".fails", ""));
  for (const int signal : {SIGTERM, SIGABRT}) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run({"context", "count", "die=" + std::to_string(signal), "pause"}), 128 + signal);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("could not end its work"))
        << signal;
  }
  EXPECT_EQ(server.end(), 0);
}

TEST_F(SignalsOfTenants, say_where_there_is_no_server_any_more) {
  auto server = std::make_unique<ServingProcess>(socket, false);
  ASSERT_TRUE(server->ready());
  const std::string gone = socket + ".gone";
  const pid_t watcher =
      once_the_server_is_killed(*server, [&] { return write_file(gone, "") ? 0 : 1; });
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({"context", "count", "wait-for=" + gone, "die=15", "pause"}), 128 + SIGTERM);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("could not end its work"));
  ::waitpid(watcher, nullptr, 0);
}

TEST_F(SignalsOfTenants, send_nothing_to_files_that_took_the_number_of_theirs) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({"context", "count", "other-files", "die=15", "pause"}), 128 + SIGTERM);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("could not end its work"));
  while (program.log().find("others") == std::string::npos) ::usleep(1000);
  EXPECT_THAT(program.log(), testing::EndsWith("others heard nothing\n"));
  EXPECT_EQ(asked(), "");
  EXPECT_EQ(server.end(), 0);
}

}  // namespace
}  // namespace demarc::serve
