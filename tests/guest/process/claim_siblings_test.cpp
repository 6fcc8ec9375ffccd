// Processes of one program that was moved, after the end of their `demarc exec`.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "confine_fixture.hpp"
#include "demarc/guest/program_claim.hpp"
#include "own_process.hpp"
#include "staying_process.hpp"

namespace demarc::cuda {
namespace {

using gpu::TpcSet;
using lease::CardClaim;
using lease::ClaimRole;
using lease::PartOwner;

// Three processes of a program that have open files of their own, each for itself. A process that
// has the files of a demarc exec stands for that.
class Siblings : public Confine {
 protected:
  void SetUp() override {
    Confine::SetUp();
    ControlBlock& block = program.control.block();
    program.card.copy(block.uuid, sizeof block.uuid - 1);
    auto claim = ProgramClaim::open(false).value();
    ASSERT_TRUE(claim.take_tpcs(program.card, {1}));
    ASSERT_TRUE(claim.pass_on(program.card, block));
    exec_ = test::staying_process([] {});
    steps_ = static_cast<std::atomic<int>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  void TearDown() override {
    end_exec();
    for (const pid_t process : processes_) test::end_process(process);
    ::munmap(steps_, 4096);
    Confine::TearDown();
  }
  // For another program.
  [[nodiscard]] CardClaim held(const TpcSet& tpcs, PartOwner owner = PartOwner::program) const {
    CardClaim claim = CardClaim::open(Driver::files().value()).value();
    EXPECT_TRUE(claim.hold(program.card, owner, {tpcs.words(), 0}));
    EXPECT_TRUE(claim.keep(program.card, ClaimRole::program));
    return claim;
  }
  [[nodiscard]] TpcSet seen() const {
    const auto words =
        CardClaim::open(Driver::files().value())->others(program.card)->of(PartOwner::program).tpcs;
    return TpcSet::from_words(words[0], words[1]);
  }
  void move_to(const TpcSet& tpcs) const { program.control.block().claim.tpcs = tpcs.words(); }
  [[nodiscard]] std::string control() const { return fmt::format("/proc/{}/fd/0#0", exec_); }
  void end_exec() {
    if (exec_ > 0) test::end_process(std::exchange(exec_, -1));
  }
  void end_first() { end(0); }
  void end(std::ptrdiff_t process) {
    test::end_process(processes_[static_cast<std::size_t>(process)]);
    processes_.erase(processes_.begin() + process);
  }
  // Each has the program's claim: step 1. At each step 2 it follows: step 3, or 4 if refused.
  void start_processes() {
    for (int i = 0; i < 3; ++i) {
      processes_.push_back(::fork());
      if (processes_.back() != 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      test::refuse_calls({SYS_pidfd_getfd}, EPERM);
      if (!keep_claim(control(), program.control.block())) ::_exit(1);
      for (steps_[i] = 1;; ::usleep(1000)) {
        if (steps_[i] == 2) steps_[i] = follow_claim(program.control.block()) ? 3 : 4;
      }
    }
    for (int i = 0; i < 3; ++i) {
      while (steps_[i] != 1) ::usleep(1000);
    }
  }
  [[nodiscard]] bool follows(int process) {
    steps_[process] = 2;
    while (steps_[process] == 2) ::usleep(1000);
    return steps_[process] == 3;
  }
  pid_t exec_ = -1;
  std::atomic<int>* steps_ = nullptr;
  std::vector<pid_t> processes_;
};

TEST_F(Siblings, of_one_program_are_no_strangers_to_each_other) {
  start_processes();
  end_exec();
  move_to({1, 5});
  EXPECT_TRUE(follows(0));
  EXPECT_EQ(seen(), TpcSet({1, 5}));
  EXPECT_TRUE(follows(1)) << "the first one took TPC 5 for the program";
  end_first();
  EXPECT_EQ(seen(), TpcSet({1, 5})) << "the second one has it, too";
}

TEST_F(Siblings, vouch_for_each_other_once_the_first_has_ended) {
  start_processes();
  end_exec();
  move_to({1, 5});
  EXPECT_TRUE(follows(0));
  EXPECT_TRUE(follows(1));
  end_first();
  EXPECT_TRUE(follows(2)) << "the second one has TPC 5, too";
}

TEST_F(Siblings, do_not_vouch_for_tpcs_that_they_have_no_more) {
  start_processes();
  end_exec();
  move_to({1, 5});
  EXPECT_TRUE(follows(0));
  end_first();
  const auto other = held({5});
  EXPECT_FALSE(follows(1));
}

TEST_F(Siblings, do_not_vouch_for_tpcs_that_none_of_them_took) {
  start_processes();
  end_exec();
  move_to({1, 5});
  EXPECT_TRUE(follows(0));
  move_to({1, 5, 6});
  const auto other = held({6});
  EXPECT_FALSE(follows(1));
}

TEST_F(Siblings, do_not_vouch_for_tpcs_that_another_one_took_later) {
  start_processes();
  end_exec();
  move_to({1, 5});
  EXPECT_TRUE(follows(0));
  move_to({1, 5, 6});
  EXPECT_TRUE(follows(1));
  end(1);
  const auto other = held({6});
  EXPECT_FALSE(follows(2)) << "the first one lives and never had TPC 6";
}

// There is room for sixteen that have taken them.
TEST_F(Siblings, vouch_for_each_other_however_many_took_the_tpcs_before) {
  start_processes();
  end_exec();
  move_to({1, 5});
  for (int i = 0; i < 17; ++i) EXPECT_TRUE(follows(0));
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  std::int32_t(&takers)[16] = program.control.block().claim_takers;
  for (std::int32_t& taker : takers) {
    if (taker == 0) taker = gone;
  }
  EXPECT_TRUE(follows(1));
  end_first();
  EXPECT_TRUE(follows(2)) << "the second one was noted in the place of one that has ended";
}

TEST_F(Siblings, take_nothing_that_a_tenant_or_a_program_that_does_not_share_has) {
  start_processes();
  end_exec();
  move_to({1, 5});
  ControlBlock& block = program.control.block();
  for (const PartOwner own : {PartOwner::program, PartOwner::sharing}) {
    block.claim_owner = own;
    for (const PartOwner other : {PartOwner::tenants, PartOwner::program}) {
      const auto theirs = held({5}, other);
      EXPECT_FALSE(follows(0));
    }
  }
  const auto sharing = held({5}, PartOwner::sharing);
  block.claim_owner = PartOwner::program;
  EXPECT_FALSE(follows(0));
  block.claim_owner = PartOwner::sharing;
  EXPECT_TRUE(follows(0)) << "both allow it";
}

// It has had them since it was asked to move the program.
TEST_F(Siblings, have_what_their_demarc_exec_has_claimed_as_long_as_that_lives) {
  end_exec();  // this process stands for another one
  ControlBlock& block = program.control.block();
  auto claim = ProgramClaim::open(false).value();
  ASSERT_TRUE(claim.take_tpcs(program.card, {1}));
  ASSERT_TRUE(claim.pass_on(program.card, block));
  const auto exec = held({5});
  EXPECT_TRUE(test::passes_in_a_process([&] {
    test::refuse_calls({SYS_pidfd_getfd}, EPERM);
    ASSERT_TRUE(keep_claim(program.control.value(), block));
    move_to({1, 5});
    EXPECT_TRUE(follow_claim(block));
  }));
}

TEST_F(Siblings, that_are_refused_have_taken_nothing) {
  start_processes();
  end_exec();
  move_to({1, 5, 6});
  {
    const auto other = held({6});
    EXPECT_FALSE(follows(0));
  }
  EXPECT_EQ(seen(), TpcSet({1}));
}

TEST_F(Siblings, have_no_claim_on_other_files_than_their_demarc_exec_had) {
  for (const bool refused : {false, true}) {
    for (const int word : {0, 1}) {
      EXPECT_TRUE(test::passes_in_a_process([&] {
        if (refused) test::refuse_calls({SYS_pidfd_getfd}, EPERM);
        ControlBlock& block = program.control.block();
        EXPECT_TRUE(keep_claim(control(), block));
        ++block.claim_file_ids[0][word];
        const auto other = keep_claim(control(), block);
        --block.claim_file_ids[0][word];
        ASSERT_FALSE(other);
        EXPECT_EQ(other.error().kind, ErrorKind::missing_capability);
        EXPECT_THAT(other.error().message,
                    testing::HasSubstr("no longer the files on which demarc exec has claimed"));
      }));
    }
  }
}

}  // namespace
}  // namespace demarc::cuda
