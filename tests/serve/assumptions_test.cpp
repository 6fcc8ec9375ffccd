// What `demarc exec --tenant` takes for granted of the machine is asked before a program runs, and
// in each of its processes.
#include <gtest/gtest.h>

#include <filesystem>

#include "tenant_programs.hpp"

namespace demarc::serve {
namespace {

using cuda::complain;
using test::Supervised;

// CUDA without a daemon in the folder makes a context that takes turns with the other tenants'.
TEST_F(TenantPrograms, of_a_lease_with_mps_are_its_clients_in_the_proof_and_in_each_process) {
  ServingProcess server(socket, false, "/the/servers/mps");
  ASSERT_TRUE(server.ready());
  const auto outcome_of = [&](int proof, const char* program_is, std::vector<std::string> steps) {
    std::filesystem::remove(program.log_path());
    return Supervised::apart([&] {
      fake::FakeConfig config = fake::small_gpu();
      config.mps_attribute = proof;
      test::configure(config);
      ::setenv("DEMARC_FAKE_MPS", program_is, 1);
      const auto outcome = run_confined(plan_of("b", steps));
      if (outcome) return outcome->holds() ? 0 : 10 + outcome->program_exit_code;
      const std::string& said = outcome.error().message;
      const bool named = said.find("/the/servers/mps") != std::string::npos;
      return named ? 20 + static_cast<int>(outcome.error().kind) : complain(said);
    });
  };
  constexpr int lacks = 20 + static_cast<int>(ErrorKind::missing_capability);
  EXPECT_EQ(outcome_of(0, "1", {"context"}), lacks) << "the proof is made in no client";
  EXPECT_EQ(outcome_of(2, "1", {"context"}), lacks) << "the driver does not tell";
  EXPECT_EQ(outcome_of(1, "1", {"context", "count"}), 0) << program.log();
  for (const char* none : {"0", "2"}) {
    EXPECT_EQ(outcome_of(1, none, {"context", "count"}), 12) << "the program stops with 2";
    EXPECT_EQ(program.log().find("context 0"), std::string::npos) << "before it has a context";
    EXPECT_EQ(outcome_of(1, none, {"spawn", "context", "count"}), 12) << "and so does a child";
  }
  EXPECT_EQ(server.end(), 0);
}

TEST_F(TenantPrograms, are_told_that_they_take_turns_where_the_server_has_no_mps) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(
      Supervised::apart([&] {
        auto plan = plan_of("b", {"context", "count"});
        std::string told;
        plan.tell = [&](const std::string& line) { told += line + "\n"; };
        const auto outcome = run_confined(plan);
        REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
        REQUIRE_IN_CHILD(told.find("runs without MPS: the programs of its tenants take turns") !=
                         std::string::npos);
        return 0;
      }),
      0);
  EXPECT_EQ(server.end(), 0);
}

TEST_F(TenantPrograms, of_a_driver_that_does_not_tell_of_local_memory_are_stopped) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(Supervised::apart([&] {
              ::setenv("DEMARC_FAKE_WITHOUT_STACKS", "1", 1);
              const auto outcome = run_confined(plan_of("b", {"context", "count"}));
              REQUIRE_IN_CHILD(outcome.has_value() && !outcome->holds());
              REQUIRE_IN_CHILD(outcome->program_exit_code == 2);
              REQUIRE_IN_CHILD(program.log().ends_with("context 0\n"));
              return 0;
            }),
            0)
      << program.log();
  EXPECT_EQ(server.end(), 0);
}

TEST_F(TenantPrograms, of_a_driver_whose_functions_are_not_known_are_refused) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(Supervised::apart([&] {
              fake::FakeConfig config = fake::small_gpu();
              config.cuda_version = 13010;
              test::configure(config);
              const auto outcome = run_confined(plan_of("b", {"context"}));
              REQUIRE_IN_CHILD(!outcome && outcome.error().kind == ErrorKind::missing_capability);
              REQUIRE_IN_CHILD(outcome.error().message.find(
                                   "this driver has CUDA 13.1, and Demarc knows only the functions "
                                   "up to 13.0") != std::string::npos);
              return 0;
            }),
            0);
  EXPECT_EQ(server.end(), 0);
}

}  // namespace
}  // namespace demarc::serve
