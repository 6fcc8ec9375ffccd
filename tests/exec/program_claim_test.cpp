// What a program under `demarc exec` has of a card, beside tenants of a server and other programs.
#include "demarc/guest/program_claim.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "program_claims.hpp"

namespace demarc::cuda {
namespace {

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
