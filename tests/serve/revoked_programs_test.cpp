// Programs whose tenant is revoked, or whose server ends, before they have used the card: their
// demarc exec lets go of what would keep the next server from starting.
#include <gmock/gmock.h>

#include <fstream>

#include "demarc/lease/card_claim.hpp"
#include "tenant_programs.hpp"

namespace demarc::serve {
namespace {

using lease::ClaimRole;
using testing::HasSubstr;
using testing::Not;

class RevokedPrograms : public TenantPrograms {
 protected:
  // A program of tenant a that uses the card after a word. What its demarc exec said, once `work`
  // was done before that word and it has let go of the lease.
  std::string said_after(ServingProcess& server, const std::function<void()>& work) {
    const auto folder = test::fresh_folder("revoked");
    const std::string go = folder / "go";
    const std::string said = folder / "said";
    const pid_t exec = ::fork();
    if (exec == 0) {
      auto plan = plan_of("a", {"process", "wait-for=" + go, "context"});
      plan.tell = [&](const std::string& line) {
        std::ofstream(said, std::ios::app) << line << std::endl;
      };
      const auto outcome = run_confined(plan);
      std::_Exit(outcome ? outcome->program_exit_code : 100);
    }
    while (program.log().find("process") == std::string::npos) ::usleep(1000);
    EXPECT_EQ(keepers(), std::vector<pid_t>{exec});
    work();
    for (int i = 0; i < 10'000 && !keepers().empty(); ++i) ::usleep(1000);
    EXPECT_TRUE(keepers().empty());
    EXPECT_THAT(program.log(), Not(HasSubstr("context"))) << "the program runs on";
    std::ofstream{go};
    int status = 0;
    ::waitpid(exec, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 2) << "of its process that could not attach";
    EXPECT_THAT(program.log(), Not(HasSubstr("context")));
    EXPECT_TRUE(server.process() < 0 || server.end() == 0);
    return read_file(said).value_or("");
  }
  // Processes that hold the socket's lock, which comes with a lease as the card's claim does.
  std::vector<pid_t> keepers() {
    std::vector<pid_t> found;
    const auto lock = lease::CardClaim::open({socket + ".lock"}).value();
    for (const auto& one : lock.claimers(program.card, ClaimRole::tenant)) {
      found.push_back(one.process);
    }
    return found;
  }
};

TEST_F(RevokedPrograms, hold_nothing_that_keeps_a_next_server_from_starting) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(
      said_after(server, [&] { EXPECT_TRUE(lease::LeaseClient::connect(socket)->revoke("a")); }),
      "demarc serve runs without MPS: the programs of its tenants take turns on the card, "
      "and 'a' has its TPCs alone while it has its turn\n"
      "tenant 'a' was revoked: this lease of it has ended; no other process of the program "
      "gets anything of it\n");
}

TEST_F(RevokedPrograms, of_a_server_that_was_killed_do_not_hold_it_either) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_THAT(said_after(server, [&] { server.kill(); }),
              HasSubstr("demarc serve has ended, or ended this connection; no other process of the "
                        "program gets anything of it\n"));
}

}  // namespace
}  // namespace demarc::serve
