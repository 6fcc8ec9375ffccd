// What a finding says of a shared-memory race, which warps race where several read, and what
// becomes of the records of accesses when their moments run out.
#include <gmock/gmock.h>

#include "harness.hpp"
#include "machine.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::shared_area;

// Behind a barrier warp 0 does `first`, warp 1 `second`, warp 2 `third`, in the order 2, 0, 1: the
// last that comes to the barrier goes on. %r4 is the thread's word.
Result<Outcome> run_three(const std::string& first, const std::string& second,
                          const std::string& third) {
  return run_text(
      kernel_of(shared_area,
                "and.b32 %r3, %r1, 31;\nmov.u32 %r5, area;\nmad.lo.u32 %r4, %r3, 4, %r5;\n"
                "setp.ge.u32 %p1, %r1, 32;\nsetp.ge.u32 %p2, %r1, 64;\n@!%p1 st.shared.u32 [%r4], "
                "0;\nbar.sync 0;\n@%p2 bra THIRD;\n@%p1 bra SECOND;\n" +
                    first + "\nbra OVER;\nSECOND:\n" + second + "\nbra OVER;\nTHIRD:\n" + third +
                    "\nOVER:"),
      launch_of(1, 96, 768));
}

std::string race_of(const std::string& first, const std::string& second,
                    const std::string& third = "") {
  const auto outcome = run_three(first, second, third);
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome || outcome->findings.empty()) return "none";
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::shared_race);
  return fmt::format("({}) {}", outcome->findings[0].thread[0], outcome->findings[0].detail);
}

TEST(Races, name_both_threads_the_address_and_the_instruction_of_the_other) {
  EXPECT_EQ(race_of("st.shared.u32 [%r4], %r1;",
                    "setp.eq.u32 %p3, %r1, 37;\n@%p3 ld.shared.u32 %r6, [%r4];"),
            "(37) shared memory at 0x14: thread (5,0,0) touched it since the last barrier at line "
            "25: st.shared.u32 [%r4], %r1;");
  // All threads of a warp at one address: the first of each.
  EXPECT_EQ(race_of("st.shared.u32 [%r5+8], 1;", "ld.shared.u32 %r6, [%r5+8];"),
            "(32) shared memory at 0x8: thread (0,0,0) touched it since the last barrier at line "
            "25: st.shared.u32 [%r5+8], 1;");
}

TEST(Races, with_several_readers_say_so) {
  EXPECT_EQ(
      race_of("ld.shared.u32 %r6, [%r4];", "st.shared.u32 [%r4], 5;", "ld.shared.u32 %r6, [%r4];"),
      "(32) shared memory at 0x0: several threads touched it since the last barrier at line "
      "25: ld.shared.u32 %r6, [%r4];");
}

TEST(Races, are_of_two_warps_of_which_one_writes_unless_both_are_strong) {
  const std::string load = "ld.shared.u32 %r6, [%r4];";
  const std::string store = "st.shared.u32 [%r4], %r1;";
  const std::string strong_load = "ld.volatile.shared.u32 %r6, [%r4];";
  const std::string strong_store = "st.volatile.shared.u32 [%r4], %r1;";
  const std::string atomic = "atom.shared.add.u32 %r6, [%r4], 1;";
  const auto races = [](const std::string& first, const std::string& second,
                        const std::string& third = "") {
    return race_of(first, second, third) != "none";
  };
  EXPECT_FALSE(races(load, load, load));
  EXPECT_FALSE(races(load + store + load + atomic, ""));
  EXPECT_TRUE(races(load, store, load));
  for (const std::string& one : {strong_load, strong_store, atomic}) {
    for (const std::string& other : {strong_load, strong_store, atomic})
      EXPECT_FALSE(races(one, other)) << one << other;
  }
  for (const std::string& writes : {store, strong_store, atomic}) {
    EXPECT_TRUE(races(load, writes)) << writes;
    EXPECT_TRUE(races(writes, load)) << writes;
    EXPECT_TRUE(races(writes, store)) << writes;
    EXPECT_TRUE(races(store, writes)) << writes;
  }
  EXPECT_TRUE(races(strong_load, store));
  EXPECT_TRUE(races(store, strong_load));
  EXPECT_FALSE(races(strong_load, load));
  // For several readers, one that is not strong is enough, whichever comes first.
  EXPECT_FALSE(races(strong_load, strong_store, strong_load));
  EXPECT_TRUE(races(strong_load, strong_store, load));
  EXPECT_TRUE(races(load, strong_store, strong_load));
}

// A vector's last word, and the words beside it.
TEST(Races, are_of_the_words_that_both_touch) {
  const std::string vector =
      "shl.b32 %r6, %r3, 4;\nadd.u32 %r6, %r6, %r5;\nsetp.eq.u32 %p3, %r3, "
      "3;\n@%p3 st.shared.v4.u32 [%r6], {%r1, %r1, %r1, %r1};";
  for (unsigned word = 10; word < 18; ++word) {
    const std::string load = fmt::format("ld.shared.u32 %r7, [%r5+{}];", word * 4);
    EXPECT_EQ(race_of(vector, load) != "none", word >= 12 && word < 16) << word;
    EXPECT_EQ(race_of(load, vector) != "none", word >= 12 && word < 16) << word;
  }
}

class Records : public testing::Test {
 protected:
  Records() {
    program.block = {96, 1, 1};
    program.shared_bytes = 64;
    program.functions.resize(1);
    program.tids.resize(std::size_t{3} * 3 * warp_size);
    program.instructions.resize(4);
  }

  // Lane 4 of a warp touches the word at 8.
  void touch(Block& block, unsigned warp, AccessMode mode) const {
    MicroOp op;
    op.instruction = warp + 1;
    op.bytes = 4;
    Access access{};
    access.mask = 1U << 4;
    access.addresses[4] = 8;
    access.delta = block.shared_region.delta;
    access.space = MemorySpace::shared;
    block.check_race(block.warps[warp], &op, access, 4, mode);
  }

  static constexpr std::uint64_t moments = (std::uint64_t{1} << 27) - 2;
  Program program;
  FramePool pool;
};

TEST_F(Records, of_accesses_last_until_everything_is_ordered) {
  Block block(program, pool);
  block.start(0, false, false);
  touch(block, 0, AccessMode::store);
  block.next_moment();
  touch(block, 1, AccessMode::load);
  EXPECT_EQ(block.findings.size(), 1U);
  block.start(0, false, false);
  touch(block, 0, AccessMode::store);
  block.next_epoch();
  touch(block, 1, AccessMode::load);
  EXPECT_TRUE(block.findings.empty());
}

TEST_F(Records, begin_anew_once_there_are_no_more_moments) {
  for (const bool clocks : {false, true}) {
    program.orders_warps = clocks;
    Block block(program, pool);
    block.start(0, false, false);
    block.epoch = moments - 2;
    block.unordered_epoch = 5;
    touch(block, 0, AccessMode::store);
    touch(block, 0, AccessMode::load);
    if (clocks) {
      block.clocks.write(0, 3, block.epoch + 2, true, false);
      block.clocks.read(2, 3, true);
    }
    block.next_moment();
    EXPECT_EQ(block.epoch, moments - 1);
    EXPECT_EQ(block.unordered_epoch, 5U);
    touch(block, 1, AccessMode::load);
    EXPECT_EQ(block.findings.size(), 1U) << "the last moment counts";
    block.next_moment();
    EXPECT_EQ(block.epoch, 1U);
    EXPECT_EQ(block.unordered_epoch, 1U);
    for (const auto* records : {&block.races.writes, &block.races.reads, &block.races.strong_writes,
                                &block.races.strong_reads}) {
      EXPECT_THAT(*records, testing::Each(0U));
    }
    block.findings.clear();
    touch(block, 1, AccessMode::store);
    EXPECT_TRUE(block.findings.empty());
    touch(block, 0, AccessMode::load);
    EXPECT_EQ(block.findings.size(), 1U) << "what comes then is looked at again";
    block.findings.clear();
    touch(block, 0, AccessMode::store);
    block.findings.clear();
    touch(block, 2, AccessMode::load);
    EXPECT_EQ(block.findings.size(), 1U) << "clocks of before order nothing";
  }
}

TEST_F(Records, are_ordered_by_no_clock_of_moments_that_are_over) {
  program.orders_warps = true;
  program.check_races = true;
  Block block(program, pool);
  block.start(0, false, false);
  block.clocks.write(0, 5, 9, true, false);
  block.clocks.read(1, 5, true);
  ASSERT_TRUE(block.clocks.ordered(1, 0, 9));
  block.epoch = (std::uint64_t{1} << 27) - 3;
  block.next_moment();
  EXPECT_EQ(block.epoch, 1U);
  EXPECT_FALSE(block.clocks.ordered(1, 0, 9));
}

TEST(Clocks, order_what_a_warp_hands_on_and_nothing_else) {
  RaceClocks clocks;
  EXPECT_FALSE(clocks.used());
  clocks.use(3);
  clocks.clear();
  EXPECT_TRUE(clocks.used());
  constexpr std::uint64_t place = 77;
  EXPECT_TRUE(clocks.ordered(1, 1, 9)) << "a warp's own";
  EXPECT_FALSE(clocks.ordered(1, 0, 1));
  // Released at 5 by warp 0, acquired by warp 1.
  clocks.write(0, place, 5, true, false);
  EXPECT_FALSE(clocks.ordered(1, 0, 5));
  clocks.read(1, place, true);
  EXPECT_TRUE(clocks.ordered(1, 0, 5));
  EXPECT_FALSE(clocks.ordered(1, 0, 6));
  EXPECT_FALSE(clocks.ordered(2, 0, 5));
  // What warp 1 hands on holds what it has taken up.
  clocks.write(1, place + 1, 8, true, false);
  clocks.read(2, place + 1, false);
  EXPECT_FALSE(clocks.ordered(2, 0, 5)) << "not acquired";
  clocks.fence(2, 9);
  EXPECT_TRUE(clocks.ordered(2, 0, 5));
  EXPECT_TRUE(clocks.ordered(2, 1, 8));
  EXPECT_FALSE(clocks.ordered(2, 1, 9));
  EXPECT_FALSE(clocks.ordered(0, 2, 9));
  // Without a release, what the last fence covers.
  clocks.write(2, place + 2, 12, false, false);
  clocks.read(0, place + 2, true);
  EXPECT_TRUE(clocks.ordered(0, 2, 9));
  EXPECT_FALSE(clocks.ordered(0, 2, 10));
  EXPECT_TRUE(clocks.ordered(0, 1, 8));
}

TEST(Clocks, keep_what_atomics_add_to_forget_what_stores_replace_and_move_it_from_phase_to_phase) {
  RaceClocks clocks;
  clocks.use(3);
  clocks.clear();
  constexpr std::uint64_t place = 77;
  clocks.write(0, place, 5, true, true);
  clocks.write(1, place, 6, true, true);
  clocks.read(2, place, true);
  EXPECT_TRUE(clocks.ordered(2, 0, 5));
  EXPECT_TRUE(clocks.ordered(2, 1, 6));
  clocks.clear();
  EXPECT_FALSE(clocks.ordered(2, 0, 5));
  clocks.read(2, place, true);
  EXPECT_FALSE(clocks.ordered(2, 0, 5)) << "places are cleared, too";
  clocks.write(0, place, 5, true, true);
  clocks.write(1, place, 6, true, false);
  clocks.read(2, place, true);
  EXPECT_FALSE(clocks.ordered(2, 0, 5)) << "a store replaces what was there";
  EXPECT_TRUE(clocks.ordered(2, 1, 6));
  clocks.clear();
  clocks.write(0, place, 5, true, true);
  clocks.forget(place);
  clocks.read(2, place, true);
  EXPECT_FALSE(clocks.ordered(2, 0, 5));
  clocks.write(0, place, 7, true, true);
  clocks.move(place, place + 1);
  clocks.read(2, place, true);
  EXPECT_FALSE(clocks.ordered(2, 0, 7));
  clocks.read(2, place + 1, true);
  EXPECT_TRUE(clocks.ordered(2, 0, 7));
  clocks.move(place, place + 1);
  clocks.read(1, place + 1, true);
  EXPECT_TRUE(clocks.ordered(1, 0, 7)) << "an empty place leaves the other as it is";
  clocks.clear();
  clocks.write(0, place, 3, true, true);
  clocks.read(1, place, false);
  clocks.fence(0, 4);
  clocks.clear();
  clocks.fence(1, 5);
  EXPECT_FALSE(clocks.ordered(1, 0, 3)) << "what was seen is cleared";
  clocks.write(0, place, 6, false, true);
  clocks.read(1, place, true);
  EXPECT_FALSE(clocks.ordered(1, 0, 1)) << "fences are cleared";
}

}  // namespace
}  // namespace demarc::emulate
