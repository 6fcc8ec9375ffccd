// What a server does where the system gives it no files, or interrupts it.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cerrno>

#include "own_process.hpp"
#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

class ServersInNeed : public ServerTest {
 protected:
  void SetUp() override { start(); }
};

// Runs `work` where this process can open no more files.
template <class Work>
auto without_files(Work work) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlimit none{0, files.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  auto result = work();
  ::setrlimit(RLIMIT_NOFILE, &files);
  return result;
}

TEST_F(ServersInNeed, does_not_start_where_its_table_cannot_be_kept) {
  card.has_table = true;
  server.reset();
  const auto refused =
      without_files([&] { return Server::start(options, card, {terms_of("a", {0}, 1)}); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message,
            "the table of the colours cannot be kept: Too many open files");
}

TEST_F(ServersInNeed, says_why_it_cannot_wait) {
  const auto turned = without_files([&] { return server->turn(0); });
  ASSERT_FALSE(turned);
  EXPECT_EQ(turned.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(turned.error().message, "poll: Invalid argument");
  EXPECT_TRUE(server->turn(0));
}

TEST_F(ServersInNeed, gives_no_lease_where_its_token_could_be_guessed) {
  EXPECT_TRUE(test::passes_in_a_process([&] {
    test::refuse_calls({SYS_getrandom}, ENOSYS);
    EXPECT_EQ(refusal(connect(), lease::OpenRequest{"a", ""}),
              "no random numbers: Function not implemented");
    EXPECT_EQ(status("a").leases, 0U);
  }));
}

TEST_F(ServersInNeed, goes_on_after_a_signal_that_came_while_it_waited) {
  static std::atomic<int> signals{0};
  struct sigaction counts {};
  struct sigaction before {};
  counts.sa_handler = [](int) { ++signals; };
  ::sigaction(SIGALRM, &counts, &before);
  const itimerval often{{0, 1000}, {0, 1000}};
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  for (const int seen = signals; signals < seen + 3;) EXPECT_TRUE(server->turn(10'000));
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(open(connect()).lease.tenant, "a");
}

}  // namespace
}  // namespace demarc::serve
