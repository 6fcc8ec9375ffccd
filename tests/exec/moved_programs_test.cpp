// Programs under `demarc exec` that get other TPCs while they run, and what they then have of the
// card.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "program_claims.hpp"

namespace demarc::cuda {
namespace {

// A program that runs while `work` is done.
class MovedPrograms : public ProgramClaims {
 protected:
  void beside(bool observed, const std::function<void(pid_t exec)>& work) {
    const std::string go = test::fresh_folder("go") / "on";
    const pid_t exec = ::fork();
    if (exec == 0) {
      auto plan = plan_for(program, {"process", "context", "count", "wait-for=" + go});
      plan.observe = observed;
      if (observed) plan.choice = {};
      std::_Exit(run_confined(plan) ? 0 : 1);
    }
    ASSERT_TRUE(has_counted(exec));
    work(exec);
    std::ofstream{go};
    int status = 0;
    ::waitpid(exec, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(seen(PartOwner::program), ClaimedPart{});
  }
  std::string move(const std::string& tpcs) {
    const auto said = test::fresh_folder("moved") / "text";
    Supervised::apart([&] {
      const pid_t process = std::stoi(program.log().substr(std::strlen("process ")));
      const auto moved = confine_again(process, {tpcs, "", 0, 0});
      std::ofstream(said) << (moved ? "moved" : moved.error().message);
      return 0;
    });
    return read_file(said).value_or("nothing was moved");
  }
};

TEST_F(MovedPrograms, have_their_new_t_p_cs_too) {
  beside(false, [&](pid_t) {
    {
      const auto other = held(PartOwner::program, part_of({6}), ClaimRole::program);
      EXPECT_THAT(move("5-6"), testing::HasSubstr("the TPCs 6 of"));
      EXPECT_EQ(seen(PartOwner::program), part_of({1, 3, 6}, 0x2)) << "nothing else is claimed";
    }
    EXPECT_EQ(move("3-5"), "moved") << "TPC 3 is its own";
    EXPECT_EQ(seen(PartOwner::program), part_of({1, 3, 4, 5}, 0x2));
  });
}

// Others look at the new file alone where they do not see this user's processes.
TEST_F(MovedPrograms, claim_what_they_have_anew_where_the_driver_is_installed_anew) {
  const std::string driver = test::fake_libcuda();
  const auto exchange = [&] {
    return ::renameat2(AT_FDCWD, (driver + ".new").c_str(), AT_FDCWD, driver.c_str(),
                       RENAME_EXCHANGE);
  };
  for (const bool observed : {false, true}) {
    std::filesystem::copy_file(driver, driver + ".new");
    beside(observed, [&](pid_t) {
      ASSERT_EQ(exchange(), 0);
      const auto on_new = [&] {
        return CardClaim::open({driver})->others(program.card)->of(PartOwner::program);
      };
      // One lock after the other is taken.
      const ClaimedPart whole = part_of(observed ? TpcSet() : TpcSet({1, 3}), 0x2);
      for (int i = 0; i < 10'000 && on_new() != whole; ++i) ::usleep(1000);
      EXPECT_EQ(on_new(), whole);
      if (observed) return;
      EXPECT_THAT(outcome_of(), testing::HasSubstr("belong to another demarc exec (process"));
    });
    ASSERT_EQ(exchange(), 0) << "this process has the first file loaded";
    std::filesystem::remove(driver + ".new");
  }
}

// A program that was moved to TPC 5, and whose demarc exec was killed before its next launch.
class OrphanedPrograms : public MovedPrograms {
 protected:
  // Whether the program has the very locks of its demarc exec.
  void start(bool shares_locks) {
    const pid_t exec = ::fork();
    if (exec == 0) {
      if (!shares_locks) test::refuse_calls({SYS_pidfd_getfd}, EPERM);
      const auto plan = plan_for(
          program, {"process", "context", "count", "wait-for=" + (folder_ / "moved").string(),
                    "count", "wait-for=" + (folder_ / "on").string()});
      std::_Exit(run_confined(plan) ? 0 : 1);
    }
    ASSERT_TRUE(has_counted(exec));
    EXPECT_EQ(move("5"), "moved");
    ::kill(exec, SIGKILL);
    ::waitpid(exec, nullptr, 0);
  }
  // Whether it has launched once more.
  [[nodiscard]] bool goes_on() const {
    const auto process = std::stoi(program.log().substr(std::strlen("process ")));
    std::ofstream{folder_ / "moved"};
    for (int i = 0; i < 10'000 && ::kill(process, 0) == 0; ++i) {
      if (program.log().rfind("count") != program.log().find("count")) return true;
      ::usleep(1000);
    }
    return false;
  }
  void end() const {
    std::ofstream{folder_ / "on"};
    for (int i = 0; i < 10'000 && seen(PartOwner::program) != ClaimedPart{}; ++i) ::usleep(1000);
    EXPECT_EQ(seen(PartOwner::program), ClaimedPart{});
  }

 private:
  std::filesystem::path folder_ = test::fresh_folder("go");
};

TEST_F(OrphanedPrograms, have_their_new_t_p_cs_at_each_moment) {
  start(true);
  EXPECT_EQ(seen(PartOwner::program), part_of({1, 3, 5}, 0x2)) << "before they use them";
  EXPECT_TRUE(goes_on());
  EXPECT_EQ(seen(PartOwner::program), part_of({1, 3, 5}, 0x2));
  end();
}

TEST_F(OrphanedPrograms, have_them_from_their_next_launch_on_where_they_share_no_locks) {
  start(false);
  EXPECT_EQ(seen(PartOwner::program), part_of({1, 3}, 0x2));
  EXPECT_TRUE(goes_on());
  EXPECT_EQ(seen(PartOwner::program), part_of({1, 3, 5}, 0x2));
  end();
}

TEST_F(OrphanedPrograms, launch_nothing_on_t_p_cs_that_others_got_meanwhile) {
  start(false);
  {
    const auto other = held(PartOwner::sharing, part_of({5}), ClaimRole::program);
    EXPECT_FALSE(goes_on());
  }
  EXPECT_EQ(seen(PartOwner::program), ClaimedPart{}) << "it has ended";
}

TEST_F(MovedPrograms, stay_where_they_are_if_their_demarc_exec_stands_still) {
  beside(false, [&](pid_t exec) {
    ::kill(exec, SIGSTOP);
    EXPECT_EQ(move("5"),
              "the program's demarc exec stands still and has not claimed the TPCs 5: the program "
              "keeps those that it has");
    ::kill(exec, SIGCONT);
    EXPECT_EQ(move("6"), "moved");
  });
}

TEST_F(MovedPrograms, are_moved_by_one_process_at_a_time) {
  beside(false, [&](pid_t) {
    const pid_t other = ::fork();
    if (other == 0) std::_Exit(move("4") == "moved" ? 0 : 1);
    EXPECT_EQ(move("7"), "moved");
    int status = 0;
    ::waitpid(other, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(seen(PartOwner::program), part_of({1, 3, 4, 7}, 0x2)) << "both were claimed";
  });
}

TEST_F(MovedPrograms, that_are_only_observed_have_nothing_to_change) {
  beside(true, [&](pid_t) {
    EXPECT_THAT(move("5"), testing::HasSubstr("this program is only observed"));
  });
}

}  // namespace
}  // namespace demarc::cuda
