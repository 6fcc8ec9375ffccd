// Containers have process namespaces of their own: who is served from there, and who is not.
#include <sched.h>
#include <sys/prctl.h>

#include "demarc/guest/control.hpp"
#include "not_run.hpp"
#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

using lease::LeaseClient;
using testing::HasSubstr;

constexpr int no_namespaces = 77;

// In a process namespace below the one of the caller, as its process 1; to be called in a child.
// Without the rights of root it takes a namespace of users too.
int below(const std::function<int()>& work) {
  if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
    return no_namespaces;
  }
  const pid_t first = ::fork();
  if (first == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(::getpid() == 1 ? work() : 2);
  }
  int status = 0;
  ::waitpid(first, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

class Namespaces : public ServerTest {};

TEST_F(Namespaces, a_program_below_is_served_and_its_control_block_found) {
  start();
  std::size_t connections = 0;
  const pid_t child = in_process([&] {
    return below([&] {
      const auto control = cuda::Control::create().value();
      control.block().counters.masked[0] = 5;
      EXPECT_TRUE(control.value().starts_with("/proc/1/fd/")) << control.value();
      auto client = LeaseClient::connect(options.socket).value();
      const auto opened = client.open("a", control.value());
      EXPECT_TRUE(opened) << opened.error().message;
      if (!opened) return 1;
      return client.list().value().tenants.at(0).launches.at(0) == 5 ? 0 : 1;
    });
  });
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    ASSERT_TRUE(server->turn(10));
    connections = std::max(connections, server->connections());
  }
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_namespaces) DEMARC_NOT_RUN("no process namespaces");
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(connections, 1U);
}

TEST_F(Namespaces, a_program_below_changes_no_tenant) {
  start();
  const pid_t child = in_process([&] {
    return below([&] {
      auto client = LeaseClient::connect(options.socket).value();
      EXPECT_THAT(client.revoke("a").error().message, HasSubstr("is in a container"));
      EXPECT_THAT(client.grow("a", step).error().message, HasSubstr("is in a container"));
      EXPECT_THAT(client.move("a", "5").error().message, HasSubstr("is in a container"));
      return testing::Test::HasFailure() ? 1 : 0;
    });
  });
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) ASSERT_TRUE(server->turn(10));
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_namespaces) DEMARC_NOT_RUN("no process namespaces");
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(this->status("a").revoked);
}

TEST_F(Namespaces, a_server_below_serves_nobody_from_above) {
  const pid_t child = in_process([&] {
    return below([&] {
      start();
      for (int i = 0; i < 500; ++i) static_cast<void>(server->turn(10));
      return 0;
    });
  });
  int status = 0;
  while (!lease::PacketSocket::connect(options.socket) &&
         ::waitpid(child, &status, WNOHANG) != child) {
    ::usleep(1000);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == no_namespaces) {
    DEMARC_NOT_RUN("no process namespaces");
  }
  const auto received = connect().receive().value();
  ASSERT_TRUE(received.packet);
  const auto refused = lease::parse_answer<lease::Done>(received.packet->text);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("process 0 at the other end cannot be watched: it is gone, or in no "
                        "process namespace below this one"));
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  ::kill(child, SIGKILL);
  end_of(child);
}

}  // namespace
}  // namespace demarc::serve
