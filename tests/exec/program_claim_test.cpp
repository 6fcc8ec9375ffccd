// What a program under `demarc exec` has of a card, beside tenants of a server and other programs.
#include "demarc/guest/program_claim.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "confine_fixture.hpp"
#include "own_process.hpp"

namespace demarc::cuda {
namespace {

using gpu::TpcSet;
using lease::CardClaim;
using lease::ClaimedPart;
using lease::ClaimRole;
using lease::PartOwner;

class ProgramClaims : public Confine {
 protected:
  // Claims of this process, which stands for a server or for another demarc exec.
  CardClaim held(PartOwner owner, const ClaimedPart& part, ClaimRole role) {
    CardClaim claim = CardClaim::open(Driver::files().value()).value();
    EXPECT_TRUE(claim.hold(program.card, owner, part));
    EXPECT_TRUE(claim.keep(program.card, role));
    return claim;
  }
  [[nodiscard]] ClaimedPart seen(PartOwner owner) const {
    return CardClaim::open(Driver::files().value())->others(program.card)->of(owner);
  }
  // Whether another process finds this one by a program's claim on these files.
  [[nodiscard]] bool is_found(const std::vector<std::string>& files) const {
    return Supervised::apart([&] {
             const auto found = CardClaim::open(files)->claimers(program.card, ClaimRole::program);
             return std::any_of(found.begin(), found.end(), [](const lease::Claimer& one) {
               return one.process == ::getppid();
             });
           }) == 1;
  }
  // What a run on TPCs 1 and 3 says, or "held".
  std::string outcome_of(const std::function<void(ConfinePlan&)>& change = {}) {
    const auto said = test::fresh_folder("said") / "text";
    const int code = Supervised::apart([&] {
      auto plan = plan_for(program, {"context", "launch"});
      plan.tell = [&](const std::string& line) { std::ofstream(said, std::ios::app) << line; };
      if (change) change(plan);
      const auto outcome = run_confined(plan);
      if (outcome) return outcome->holds() ? 0 : complain(warnings(*outcome));
      std::ofstream(said) << outcome.error().message;
      return static_cast<int>(outcome.error().kind);
    });
    return fmt::format("{} {}", code, read_file(said).value_or(""));
  }
  // Whether the program has launched something before its demarc exec has ended.
  [[nodiscard]] bool has_counted(pid_t exec) const {
    siginfo_t ended{};
    while (program.log().find("count") == std::string::npos) {
      ::waitid(P_PID, static_cast<id_t>(exec), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (ended.si_pid == exec) return false;
      ::usleep(1000);
    }
    return true;
  }
  // The run's own process has the claims of this one mapped too.
  static auto names_this_process(const std::string& begin) {
    return testing::AllOf(testing::StartsWith(begin),
                          testing::HasSubstr(fmt::format("{} (", ::getpid())));
  }
  static ClaimedPart part_of(const TpcSet& tpcs, std::uint64_t domains = 0) {
    return {tpcs.words(), domains};
  }
};

TEST_F(ProgramClaims, t_p_cs_of_a_tenant_are_refused_by_the_name_of_the_server) {
  const auto server = held(PartOwner::tenants, part_of({3, 4}, 0x2), ClaimRole::server);
  for (const bool overlap : {false, true}) {
    const std::string said = outcome_of([&](ConfinePlan& plan) { plan.allow_overlap = overlap; });
    EXPECT_THAT(said, names_this_process("2 the TPCs 3 of " + program.card +
                                         " belong to tenants of demarc serve (process"));
  }
  EXPECT_THAT(program.log(), testing::Not(testing::HasSubstr("launch"))) << "it did not run";
  EXPECT_EQ(outcome_of([](ConfinePlan& plan) { plan.choice.tpcs = "1,5"; }), "0 ");
  EXPECT_THAT(outcome_of([](ConfinePlan& plan) {
                plan.choice.tpcs = "1";
                plan.sync_domain = {DomainChoice::Kind::given, 1};
              }),
              testing::StartsWith("2 the memory synchronisation domain 1 of " + program.card +
                                  " belongs to a tenant of demarc serve (process"));
}

TEST_F(ProgramClaims,
       t_p_cs_of_a_tenant_whose_server_was_killed_are_refused_by_the_name_of_its_program) {
  const auto left = held(PartOwner::tenants, part_of({3}), ClaimRole::tenant);
  EXPECT_THAT(outcome_of(), names_this_process("2 the TPCs 3 of " + program.card +
                                               " belong to tenants of demarc serve (process"));
}

TEST_F(ProgramClaims, t_p_cs_of_another_program_are_shared_only_if_both_allow_it) {
  const auto allows = [](ConfinePlan& plan) { plan.allow_overlap = true; };
  {
    const auto other = held(PartOwner::program, part_of({1, 2}), ClaimRole::program);
    EXPECT_THAT(outcome_of(), names_this_process("2 the TPCs 1 of " + program.card +
                                                 " belong to another demarc exec (process"));
    EXPECT_THAT(outcome_of(allows), testing::StartsWith("2 the TPCs 1"));
  }
  {
    const auto other = held(PartOwner::sharing, part_of({1, 2}), ClaimRole::program);
    EXPECT_THAT(outcome_of(), testing::HasSubstr("give --allow-overlap to both"));
    EXPECT_EQ(outcome_of(allows), "0 ");
  }
  EXPECT_EQ(outcome_of(), "0 ");
}

TEST_F(ProgramClaims, a_program_has_its_t_p_cs_and_its_domain_while_it_runs_and_no_longer) {
  for (const bool overlap : {false, true}) {
    const PartOwner owner = overlap ? PartOwner::sharing : PartOwner::program;
    EXPECT_EQ(Supervised::apart([&] {
                auto plan = plan_for(program, {"context", "launch"});
                plan.allow_overlap = overlap;
                ClaimedPart part;
                plan.started = [&](const std::string&) { part = seen(owner); };
                REQUIRE_IN_CHILD(run_confined(plan)->holds());
                REQUIRE_IN_CHILD(part == part_of({1, 3}, 0x2));
                REQUIRE_IN_CHILD(seen(owner) == ClaimedPart{});
                return 0;
              }),
              0);
  }
}

// Its descriptors are closed, and demarc exec is killed.
TEST_F(ProgramClaims, a_program_that_outlives_its_demarc_exec_keeps_what_it_has) {
  const std::string go = test::fresh_folder("go") / "on";
  const pid_t exec = ::fork();
  if (exec == 0) {
    const auto plan =
        plan_for(program, {"context", "close-files", "count", "wait-for=" + go, "count"});
    std::_Exit(run_confined(plan) ? 0 : 1);
  }
  ASSERT_TRUE(has_counted(exec));
  ::kill(exec, SIGKILL);
  ::waitpid(exec, nullptr, 0);
  EXPECT_EQ(seen(PartOwner::program), part_of({1, 3}, 0x2));
  EXPECT_THAT(outcome_of(), testing::HasSubstr("belong to another demarc exec (process"));
  std::ofstream{go};
  for (int i = 0; i < 10000 && seen(PartOwner::program) != ClaimedPart{}; ++i) ::usleep(1000);
  EXPECT_EQ(seen(PartOwner::program), ClaimedPart{});
}

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

TEST_F(ProgramClaims, a_program_without_a_part_is_told_of_the_server) {
  const auto observes = [](ConfinePlan& plan) {
    plan.observe = true;
    plan.choice = {};
  };
  EXPECT_EQ(outcome_of(observes), "0 ");
  const auto server = held(PartOwner::tenants, part_of({3}), ClaimRole::server);
  ASSERT_TRUE(server.hold_lent(program.card));
  EXPECT_THAT(outcome_of(observes), names_this_process("0 demarc serve (process"));
  EXPECT_THAT(outcome_of(observes), testing::HasSubstr("this program has none of its parts"));
}

TEST_F(ProgramClaims, overlap_is_allowed_only_of_t_p_cs_that_are_chosen) {
  EXPECT_THAT(outcome_of([](ConfinePlan& plan) {
                plan.observe = true;
                plan.choice = {};
                plan.allow_overlap = true;
              }),
              testing::StartsWith("1 --allow-overlap is for programs with TPCs of their own"));
}

TEST_F(ProgramClaims, tpcs_beyond_the_6_4_th_are_refused_and_claimed_like_others) {
  const auto server = held(PartOwner::tenants, part_of({63, 64}), ClaimRole::server);
  auto claim = ProgramClaim::open(false).value();
  EXPECT_THAT(claim.take_tpcs(program.card, {64, 65}).error().message,
              testing::StartsWith("the TPCs 64 of"));
  EXPECT_TRUE(claim.take_tpcs(program.card, {65, 127}));
  EXPECT_EQ(seen(PartOwner::program), part_of({65, 127}));
}

TEST_F(ProgramClaims, t_p_cs_are_chosen_beside_those_that_others_have) {
  const auto server = held(PartOwner::tenants, part_of({1}), ClaimRole::server);
  const auto other = held(PartOwner::program, part_of({2}), ClaimRole::program);
  const auto sharing = held(PartOwner::sharing, part_of({3}), ClaimRole::program);
  for (const bool overlap : {false, true}) {
    TpcSet shown;
    auto claim = ProgramClaim::open(overlap).value();
    const auto taken = claim.take_tpcs(program.card, [&](const TpcSet& others) {
      shown = others;
      return TpcSet{4};
    });
    EXPECT_EQ(shown, (overlap ? TpcSet{1, 2} : TpcSet{1, 2, 3}));
    EXPECT_EQ(taken, (TpcSet{4}));
    const auto too_few = claim.take_tpcs(program.card, [](const TpcSet&) -> Result<TpcSet> {
      return missing_capability("9 SMs were asked for, but 1 of 16 are free");
    });
    EXPECT_THAT(too_few.error().message,
                testing::StartsWith("9 SMs were asked for, but 1 of 16 are free: the TPCs " +
                                    to_string(shown) + " of " + program.card +
                                    " belong to demarc serve, "));
    const auto wrong = claim.take_tpcs(program.card, [](const TpcSet&) -> Result<TpcSet> {
      return invalid_input("0 SMs were asked for; this GPU has 16");
    });
    EXPECT_EQ(wrong.error().message, "0 SMs were asked for; this GPU has 16");
  }
}

TEST_F(ProgramClaims, a_free_domain_is_the_first_one_that_no_owner_has) {
  const auto free_of = [this](std::uint32_t count) {
    auto claim = ProgramClaim::open(false).value();
    const auto domain = claim.take_free_domain(program.card, count);
    return domain ? fmt::format("{}, as {:#x}", *domain, seen(PartOwner::program).domains)
                  : domain.error().message;
  };
  EXPECT_EQ(free_of(4), "1, as 0x2");
  const auto tenants = held(PartOwner::tenants, part_of({}, 0x2), ClaimRole::server);
  EXPECT_EQ(free_of(4), "2, as 0x4");
  const auto sharing = held(PartOwner::sharing, part_of({}, 0x4), ClaimRole::program);
  EXPECT_EQ(free_of(4), "3, as 0x8");
  EXPECT_THAT(free_of(3), testing::HasSubstr("have all domains of the card but the common one"));
  const auto others =
      held(PartOwner::program, part_of({}, ~std::uint64_t{0x8000000000000007}), ClaimRole::program);
  EXPECT_EQ(free_of(1000), "63, as 0xfffffffffffffff8") << "with those of the other program";
}

// A claim has room for 64 of them.
TEST_F(ProgramClaims, a_domain_beyond_the_6_3_rd_is_neither_claimed_nor_compared_with_others) {
  std::string told;
  const ProgramClaim::Tell tell = [&told](const std::string& line) { told += line; };
  auto first = ProgramClaim::open(false).value();
  auto second = ProgramClaim::open(true).value();
  const auto given = [&](std::uint32_t domain) {
    told.clear();
    EXPECT_TRUE(first.take_domain(program.card, domain, tell));
    EXPECT_TRUE(second.take_domain(program.card, domain, tell));
    EXPECT_TRUE(second.take_domain(program.card, domain, {}));
    return told;
  };
  EXPECT_EQ(given(63), "another demarc exec also has the memory synchronisation domain 63");
  EXPECT_EQ(seen(PartOwner::program).domains, std::uint64_t{1} << 63U);
  EXPECT_EQ(given(64), "");
  EXPECT_EQ(given(0), "") << "all have it";
  told.clear();
  EXPECT_TRUE(first.take_domain(program.card, 5, tell));
  EXPECT_TRUE(second.take_domain(program.card, 5, tell));
  EXPECT_TRUE(first.take_domain(program.card, 5, tell));
  EXPECT_EQ(told,
            "another demarc exec also has the memory synchronisation domain 5"
            "another demarc exec also has the memory synchronisation domain 5")
      << "of a program that shares its TPCs, too";
}

TEST_F(ProgramClaims, a_domain_that_a_claim_cannot_say_is_not_that_of_a_tenant) {
  const auto tenants = held(PartOwner::tenants, part_of({}, ~std::uint64_t{0}), ClaimRole::server);
  auto claim = ProgramClaim::open(false).value();
  EXPECT_FALSE(claim.take_domain(program.card, 63, {}));
  EXPECT_TRUE(claim.take_domain(program.card, 64, {}));
}

// Others name the process that has a part; TPCs are taken in a child, which ends.
TEST_F(ProgramClaims, that_were_taken_or_passed_on_are_found_by_their_process) {
  ControlBlock& block = program.control.block();
  {
    auto taken = ProgramClaim::open(false).value();
    EXPECT_FALSE(is_found(Driver::files().value()));
    ASSERT_TRUE(taken.take_tpcs(program.card, {1}));
    EXPECT_TRUE(is_found(Driver::files().value()));
  }
  auto passed = ProgramClaim::open(true).value();
  ASSERT_EQ(Supervised::apart([&] { return passed.take_tpcs(program.card, TpcSet{2}) ? 0 : 1; }),
            0);
  EXPECT_FALSE(is_found(Driver::files().value())) << "the child has ended";
  passed.took_tpcs(TpcSet{2});
  ASSERT_TRUE(passed.pass_on(program.card, block));
  EXPECT_TRUE(is_found(Driver::files().value()));
  EXPECT_EQ(block.claim_owner, PartOwner::sharing);
  EXPECT_EQ(block.claim, part_of({2}));
}

TEST_F(ProgramClaims, that_are_passed_on_say_which_files_they_are_on) {
  auto claim = ProgramClaim::open(false).value();
  ControlBlock& block = program.control.block();
  ASSERT_TRUE(claim.take_tpcs(program.card, {1}));
  ASSERT_TRUE(claim.pass_on(program.card, block));
  struct stat facts {};
  ASSERT_EQ(::fstat(block.claim_files[0], &facts), 0);
  EXPECT_EQ(block.claim_file_ids[0][0], facts.st_dev);
  EXPECT_EQ(block.claim_file_ids[0][1], facts.st_ino);
  const auto kept = [&] {
    return Supervised::apart([&] { return keep_claim(program.control.value(), block) ? 0 : 1; });
  };
  EXPECT_EQ(kept(), 0);
  for (std::uint64_t& number : block.claim_file_ids[0]) {
    ++number;
    EXPECT_EQ(kept(), 1) << "another file has the number";
    --number;
  }
  EXPECT_EQ(kept(), 0);
}

TEST_F(ProgramClaims, are_found_on_new_files_of_the_driver_too_and_passed_on_with_at_most_eight) {
  const std::string driver = test::fresh_folder("anew") / "libcuda.so.1";
  std::filesystem::copy_file(test::fake_libcuda(), driver);
  EXPECT_TRUE(test::passes_in_a_process([&] {
    ::setenv("DEMARC_LIBCUDA", driver.c_str(), 1);
    ControlBlock& block = program.control.block();
    program.card.copy(block.uuid, sizeof block.uuid - 1);
    auto claim = ProgramClaim::open(false).value();
    ASSERT_TRUE(claim.take_tpcs(program.card, {1}));
    for (std::size_t files = 1; files <= std::size(block.claim_files); ++files) {
      ASSERT_TRUE(claim.pass_on(program.card, block));
      EXPECT_GE(block.claim_files[files - 1], 0);
      ASSERT_TRUE(write_file(driver + ".new", "a library"));
      std::filesystem::rename(driver + ".new", driver);
      claim.follow(block);
      EXPECT_TRUE(is_found({driver})) << files;
    }
    EXPECT_THAT(claim.pass_on(program.card, block).error().message,
                testing::HasSubstr("9 files of a claim; at most 8 were expected"));
  }));
}

TEST_F(ProgramClaims, a_move_is_claimed_once_the_programs_own_demarc_exec_has_the_new_tpcs) {
  ControlBlock& block = program.control.block();
  program.card.copy(block.uuid, sizeof block.uuid - 1);
  auto claim = ProgramClaim::open(false).value();
  ASSERT_TRUE(claim.take_tpcs(program.card, {1}));
  ASSERT_TRUE(claim.pass_on(program.card, block));
  EXPECT_THAT(hand_over(block, {4}, 1).error().message,
              testing::HasSubstr("has not claimed the TPCs 4"));
  EXPECT_EQ(seen(PartOwner::program), part_of({1}));
  claim.follow(block);
  EXPECT_EQ(seen(PartOwner::program), part_of({1, 4}));
  EXPECT_EQ(block.claims_held, 1U);
  claim.follow(block);
  EXPECT_EQ(seen(PartOwner::program), part_of({1, 4})) << "nothing was asked";
  std::thread follower([&] {
    while (block.claims_wanted != 2) std::this_thread::yield();
    claim.follow(block);
  });
  EXPECT_TRUE(hand_over(block, {5}));
  follower.join();
  EXPECT_EQ(seen(PartOwner::program), part_of({1, 4, 5}));
}

}  // namespace
}  // namespace demarc::cuda
