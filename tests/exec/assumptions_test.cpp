// What `demarc exec` takes for granted of a process is asked there: one driver, no hole in its
// callbacks, a hook that stays on, clients of MPS, launches that fit.
#include <gmock/gmock.h>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "assumptions_fixture.hpp"
#include "not_run.hpp"
#include "process_files.hpp"

namespace demarc::cuda {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST_F(Assumptions, a_second_file_of_the_driver_ends_the_process) {
  const auto second = test::fresh_folder("second_driver") / "libcuda.so.1";
  std::filesystem::copy_file(test::fake_libcuda(), second);
  EXPECT_EQ(ran({"context", "second-driver=" + second.string(), "launch"}, 3, false), 0) << said();
  EXPECT_THAT(said(), HasSubstr("stopped: it starts a second driver of CUDA (" + second.string()));
  EXPECT_THAT(program.log(), EndsWith("context 0\n"));
}

TEST_F(Assumptions, the_same_file_may_be_started_twice) {
  EXPECT_EQ(ran({"context", "second-driver=" + test::fake_libcuda().string(), "launch"}, 0, true),
            0)
      << said();
  EXPECT_THAT(program.log(), EndsWith("context 0\nsecond context 0\nlaunch 0\n"));
}

// It reports nothing, because it was told of no library that hooks. Its name lies in its memory,
// whatever its file is called.
TEST_F(Assumptions, a_second_driver_is_known_by_the_name_that_it_was_linked_under) {
  const auto second = test::fresh_folder("renamed_driver") / "innocent.so";
  std::filesystem::copy_file(test::fake_libcuda(), second);
  EXPECT_EQ(
      ran({"context", "set=CUDA_INJECTION64_PATH=", "second-driver=" + second.string(), "launch"},
          0, false),
      0)
      << said();
  EXPECT_THAT(program.log(), EndsWith("second context 800\nlaunch 0\n"));
  EXPECT_THAT(said(), testing::ContainsRegex("it has loaded several drivers of CUDA \\(.*" +
                                             second.string() + ".*\\), and the launches"));
}

// What /proc shows of a process is that of its first thread, and gone with it.
TEST_F(Assumptions, a_program_whose_first_thread_has_ended_is_confined) {
  EXPECT_EQ(ran({"end-main-thread", "context", "launch"}, 0, true), 0) << said();
  EXPECT_THAT(program.log(), EndsWith("context 0\nlaunch 0\n"));
}

TEST_F(Assumptions, a_hole_in_the_callbacks_of_the_driver_is_refused_by_the_name_of_the_function) {
  ::setenv("DEMARC_FAKE_UNWATCHED", "18", 1);
  EXPECT_EQ(ran({"context"}, 2, false, [](ConfinePlan& plan) { plan.host_memory = false; }), 0)
      << said();
  EXPECT_THAT(said(), HasSubstr("the driver refuses callback 18 of domain 6, that of "
                                "cuModuleLoad: a program could call this function"));
  ::setenv("DEMARC_FAKE_UNWATCHED", "477", 1);
  EXPECT_EQ(ran({"context"}, 2, false), 0) << said();
  EXPECT_THAT(said(), HasSubstr("that of cuLaunchCooperativeKernel"));
  ::unsetenv("DEMARC_FAKE_UNWATCHED");
  fake::FakeConfig config = fake::small_gpu();
  config.unwatched_function = 598;
  test::configure(config);
  EXPECT_EQ(ran({"context"}, 0, false, [](ConfinePlan& plan) { plan.host_memory = false; }),
            refused())
      << "before anything is started";
  EXPECT_THAT(said(), HasSubstr("the driver refuses callback 598 of domain 6, that of"));
}

TEST_F(Assumptions, a_launch_that_no_call_announced_ends_a_program_all_of_whose_calls_are_watched) {
  const auto watched = [](ConfinePlan& plan) { plan.host_memory = false; };
  EXPECT_EQ(ran({"context", "launch", "launch-untold"}, 3, false, watched), 0) << said();
  EXPECT_THAT(program.log(), EndsWith("launch 0\n"));
  EXPECT_THAT(said(), HasSubstr("1 launches were announced by no call of the driver"));
  EXPECT_EQ(ran({"context", "launch-untold"}, 0, true), 0) << said();
}

TEST_F(Assumptions, a_hook_that_is_switched_off_is_noticed_at_the_next_launch) {
  const auto watched = [](ConfinePlan& plan) { plan.host_memory = false; };
  EXPECT_EQ(
      ran({"take-table", "context", "launch", "switch-hook-off", "launch"}, 3, false, watched), 0)
      << said();
  EXPECT_THAT(said(), HasSubstr("1 launches passed the hook by"));
  EXPECT_THAT(program.log(), EndsWith("launch 0\noff 0\n"));
}

TEST_F(Assumptions, the_table_that_switches_the_hook_off_is_refused_with_words_about_profilers) {
  EXPECT_EQ(ran({"context", "take-table", "launch"}, 0, true), 0) << said();
  EXPECT_THAT(program.log(), EndsWith("context 0\ntable 801\nlaunch 0\n"));
  EXPECT_THAT(said(), HasSubstr("cuGetExportTable was refused: a profiler (nsys, ncu, CUPTI, "
                                "torch.profiler), or a library that sets masks"));
}

// The stand-in's SMs hold one block each, and the partition has four.
TEST_F(Assumptions, a_cooperative_launch_that_does_not_fit_into_the_partition_is_refused) {
  for (const std::string step : {"cooperative", "cooperative-by-attribute"}) {
    EXPECT_EQ(ran({"context", step + "=4", step + "=5", "launch"}, 0, true), 0) << said();
    EXPECT_THAT(program.log(), EndsWith("context 0\ncooperative 0\ncooperative 720\nlaunch 0\n"));
    EXPECT_THAT(said(), HasSubstr("a cooperative launch of 5 blocks would wait for ever: the 4 SMs "
                                  "of the partition hold 4 of them at once"));
    EXPECT_THAT(said(), HasSubstr("whose blocks do not fit into the partition at once: 1"));
  }
  EXPECT_EQ(ran({"context", "cooperative=5"}, 0, true,
                [](ConfinePlan& plan) {
                  plan.choice = {};
                  plan.observe = true;
                }),
            0)
      << said();
  EXPECT_THAT(program.log(), EndsWith("context 0\ncooperative 0\n")) << "it has the whole card";
}

TEST_F(Assumptions, a_program_is_a_client_of_mps_if_its_proof_was) {
  program.control.block().needs_mps = 1;
  EXPECT_EQ(program.run({"context", "launch"}), 2);
  EXPECT_EQ(program.log(), "");
  EXPECT_EQ(program.run({"set=DEMARC_FAKE_MPS=1", "context", "launch"}), 0);
  EXPECT_EQ(program.log(), "context 0\nlaunch 0\n");
}

TEST_F(Assumptions, a_kernel_that_may_launch_kernels_is_ended_before_it_runs) {
  ::setenv("DEMARC_FAKE_LAUNCHERS", "1", 1);
  EXPECT_EQ(ran({"context", "launch"}, 3, false), 0) << said();
  EXPECT_THAT(program.log(), EndsWith("context 0\n"));
  EXPECT_THAT(said(), HasSubstr("a kernel that may launch kernels, which would run outside"));
  ::unsetenv("DEMARC_FAKE_LAUNCHERS");
}

// The descriptors of an Ampere do not tell, so what it loads is looked at.
TEST_F(Assumptions, of_cards_that_do_not_tell_modules_whose_kernels_launch_kernels_are_not_loaded) {
  fake::FakeConfig ampere = fake::small_gpu();
  ampere.capability_major = 8;
  ampere.descriptor_version = 0x30;
  ::setenv("DEMARC_FAKE_AMPERE", "1", 1);
  test::configure(ampere);
  EXPECT_EQ(ran({"context", "launch"}, 0, true), 0) << said();
  EXPECT_EQ(ran({"context", "load-launching", "launch"}, 0, false), 0) << said();
  EXPECT_THAT(program.log(), EndsWith("context 0\nlaunching 801\nlaunch 0\n"));
  EXPECT_THAT(said(),
              HasSubstr("cuModuleLoadData was refused: its kernels may launch kernels, which "
                        "would run outside of the partition; it calls: "
                        "__cudaCDP2LaunchDeviceV2"));
  ::unsetenv("DEMARC_FAKE_AMPERE");
}

TEST_F(Assumptions, a_profiler_in_the_place_of_the_hook_is_named) {
  const auto other = test::fresh_folder("profiler") / "libprofiler.so";
  EXPECT_EQ(ran({"context"}, 0, false,
                [&](ConfinePlan& plan) {
                  plan.command.insert(plan.command.begin(),
                                      {"env", "CUDA_INJECTION64_PATH=" + other.string()});
                }),
            0)
      << said();
  EXPECT_THAT(said(), HasSubstr("its driver loads " + other.string() +
                                " in the place of libdemarc_preload.so: a profiler (nsys, ncu)"));
}

TEST_F(Assumptions, the_folder_of_processes_is_there) {
  constexpr int no_namespaces = 77;
  const auto refusal = [&](const std::function<int()>& enter) {
    return Supervised::apart([&]() -> int {
      if (const int code = enter(); code >= 0) return code;
      const auto outcome = run_confined(plan_for(program, {"context"}));
      if (outcome) return complain("it ran");
      // Where the log lies may be out of reach here.
      const std::string& said = outcome.error().message;
      if (outcome.error().kind != ErrorKind::missing_capability) return complain(said);
      if (said.find("/proc is that of another process namespace: this process is ") == 0) return 11;
      return said.find("/proc cannot be read (No such file or directory)") == 0 ? 12
                                                                                : complain(said);
    });
  };
  EXPECT_TRUE(check_process_folder());
  const int other = refusal([&]() -> int {
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
      return no_namespaces;
    }
    const pid_t first = ::fork();
    if (first == 0) return -1;
    int status = 0;
    ::waitpid(first, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
  });
  const int none = refusal([]() -> int {
    const auto root = test::fresh_folder("without_proc");
    if (::chroot(root.c_str()) == 0) return -1;
    return ::unshare(CLONE_NEWUSER) == 0 && ::chroot(root.c_str()) == 0 ? -1 : no_namespaces;
  });
  if (other == no_namespaces || none == no_namespaces) DEMARC_NOT_RUN("no process namespaces");
  EXPECT_EQ(other, 11);
  EXPECT_EQ(none, 12);
}

TEST_F(Assumptions, the_first_half_of_the_name_of_the_block_does_not_report_a_hook) {
  EXPECT_EQ(program.run({"claim-hook", "context"}), 0);
  EXPECT_EQ(program.counts.kept_off, 1U);
  EXPECT_THAT(program.log(), HasSubstr("claim 13\n")) << "EACCES";
}

}  // namespace
}  // namespace demarc::cuda
