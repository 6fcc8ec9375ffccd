// Programs whose kernels get no host memory, and where that cannot be had.
#include "confine_fixture.hpp"

namespace demarc::cuda {
namespace {

class ProgramsWithoutHostMemory : public Confine {};

TEST_F(ProgramsWithoutHostMemory, are_told_so_and_run_on) {
  for (const bool observe : {false, true}) {
    EXPECT_EQ(Supervised::apart([&] {
                auto plan = plan_for(program, {"context", "host-memory", "host-memory", "launch"});
                if (observe) plan.choice = {};
                plan.observe = observe;
                const auto with = run_confined(plan);
                REQUIRE_IN_CHILD(with.has_value() && with->holds());
                REQUIRE_IN_CHILD(
                    program.log().ends_with("context 0\nhost memory 0\nhost memory 0\nlaunch 0\n"));
                plan.host_memory = false;
                const auto without = run_confined(plan);
                REQUIRE_IN_CHILD(without.has_value() && without->holds());
                REQUIRE_IN_CHILD(program.log().ends_with(
                    "context 0\nhost memory 801\nhost memory 801\nlaunch 0\n"));
                const std::string said = warnings(*without);
                return said.find("host memory: 2") != std::string::npos ? 0 : complain(said);
              }),
              0);
  }
}

TEST_F(ProgramsWithoutHostMemory, load_no_modules_with_managed_variables) {
  EXPECT_EQ(Supervised::apart([&] {
              auto plan = plan_for(program, {"context", "managed", "launch"});
              REQUIRE_IN_CHILD(run_confined(plan)->holds());
              REQUIRE_IN_CHILD(program.log().ends_with("managed 0\nlaunch 0\n"));
              plan.host_memory = false;
              const auto without = run_confined(plan);
              REQUIRE_IN_CHILD(without.has_value() && without->holds());
              REQUIRE_IN_CHILD(program.log().ends_with("managed 801\nlaunch 0\n"));
              REQUIRE_IN_CHILD(warnings(*without).find("host memory: 1") != std::string::npos);
              return 0;
            }),
            0);
}

TEST_F(ProgramsWithoutHostMemory, are_refused_where_refusing_would_not_help) {
  EXPECT_EQ(
      Supervised::apart([&] {
        auto plan = plan_for(program, {"context"});
        plan.host_memory = false;
        const auto refusal = [&plan](const fake::FakeConfig& config) {
          test::configure(config);
          const auto outcome = run_confined(plan);
          if (outcome) return std::string("none");
          return outcome.error().kind == ErrorKind::missing_capability ? outcome.error().message
                                                                       : "another kind";
        };
        fake::FakeConfig config = fake::small_gpu();
        if (refusal(config) != "none") return complain(refusal(config));
        config.pageable = true;
        REQUIRE_IN_CHILD(refusal(config).find("uvm_disable_hmm=1") != std::string::npos);
        config.pageable = false;
        config.cuda_version = 13010;
        REQUIRE_IN_CHILD(
            refusal(config).find(
                "this driver has CUDA 13.1, and Demarc knows only the functions up to 13.0") !=
            std::string::npos);
        return 0;
      }),
      0);
}

}  // namespace
}  // namespace demarc::cuda
