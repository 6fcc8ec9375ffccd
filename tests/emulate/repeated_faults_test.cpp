// Mistakes that are made again in each turn of a loop: all are counted, and many lanes at once.
#include <gtest/gtest.h>

#include "harness.hpp"
#include "started_block.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

// A warp makes the access so often. %rd20 is 16 bytes per thread from the buffer on, %rd21 lies in
// the buffer, in shared memory or in no memory, by thread.
Outcome repeated(const std::string& instruction, int turns) {
  const std::string spread =
      ".shared .align 16 .b8 tile[64];\n.local .align 16 .b8 own[80];\nmov.u64 %rd3, tile;\n"
      "mov.u64 %rd4, own;\nmov.u64 %rd5, table;\ncvta.shared.u64 %rd6, %rd3;\n"
      "mul.wide.u32 %rd19, %r1, 16;\nadd.s64 %rd20, %rd1, %rd19;\nadd.s64 %rd18, %rd3, %rd19;\n"
      "add.s64 %rd17, %rd4, %rd19;\nand.b32 %r2, %r1, 3;\nsetp.eq.u32 %p1, %r2, 1;\n"
      "selp.b64 %rd21, %rd6, %rd1, %p1;\nsetp.eq.u32 %p1, %r2, 2;\n"
      "selp.b64 %rd21, 4096, %rd21, %p1;\nadd.s64 %rd16, %rd21, %rd19;\n"
      "mul.wide.u32 %rd15, %r2, 1;\nadd.s64 %rd15, %rd15, %rd2;\nmul.lo.u32 %r3, %r1, %r1;\n"
      "mul.wide.u32 %rd14, %r3, 64;\nadd.s64 %rd14, %rd14, %rd1;\n";
  Options options;
  options.check_uninitialised = false;  // what an atomic wrote is unwritten once only
  const auto outcome =
      run_text(kernel_of(".const .align 16 .b8 table[48];\n.global .align 16 .b8 wide[64];\n",
                         spread + "mov.u32 %r20, 0;\nagain:\n" + instruction +
                             "\nadd.u32 %r20, %r20, 1;\nsetp.lt.u32 %p8, %r20, " +
                             std::to_string(turns) + ";\n@%p8 bra again;"),
               launch_of(1, 32, 256), options);
  EXPECT_TRUE(outcome) << instruction << (outcome ? "" : outcome.error().message);
  return outcome ? *outcome : Outcome{};
}

TEST(RepeatedFaults, are_counted_in_each_turn_as_in_the_first) {
  for (const char* const instruction :
       {"atom.global.add.u32 %r9, [%rd20], 1;", "atom.global.add.u32 %r9, [%rd20+2], 1;",
        "atom.global.add.u32 %r9, [%rd1+-4], 1;", "atom.global.add.u32 %r9, [%rd1+65536], 1;",
        "atom.global.add.u32 %r9, [%rd15], 1;", "atom.global.add.u32 %r9, [%rd14], 1;",
        "atom.add.u32 %r9, [%rd16], 1;", "atom.add.u32 %r9, [%rd21], 1;",
        "atom.shared.add.u32 %r9, [%rd18], 1;", "atom.shared.add.u32 %r9, [%rd18+1], 1;",
        "st.local.u32 [%rd17], %r1;", "st.local.u32 [%rd17+2], %r1;", "st.u32 [%rd5+4], %r1;",
        "ld.const.u32 %r9, [%rd5+48];", "ld.const.u32 %r9, [%rd5+42];",
        "st.global.v2.u32 [%rd20+252], {%r1, %r1};"}) {
    const Outcome once = repeated(instruction, 1);
    const Outcome often = repeated(instruction, 7);
    EXPECT_FALSE(once.findings.empty()) << instruction;
    ASSERT_EQ(often.findings.size(), once.findings.size()) << instruction;
    for (std::size_t i = 0; i < once.findings.size(); ++i) {
      EXPECT_EQ(often.findings[i].kind, once.findings[i].kind) << instruction;
      EXPECT_EQ(often.findings[i].thread, once.findings[i].thread) << instruction;
      EXPECT_EQ(often.findings[i].detail, once.findings[i].detail) << instruction;
      EXPECT_EQ(often.findings[i].count, 7 * once.findings[i].count) << instruction;
    }
  }
}

TEST(RepeatedFaults, leave_the_accesses_of_the_other_threads) {
  const std::vector<std::uint64_t> words =
      words_of(repeated("atom.global.add.u32 %r9, [%rd20], 1;", 7));
  for (std::size_t i = 0; i < words.size(); ++i) EXPECT_EQ(words[i], i % 2 == 0 ? 7U : 0U);
}

class RepeatedLanes : public StartedBlock {
 protected:
  RepeatedLanes() {
    program.regions.resize(2);
    program.regions[0].low = 0x1000;
    program.regions[0].high = 0x1100;
    program.regions[1].low = 0x2000;
    program.regions[1].high = 0x2100;
    program.regions[1].writable = false;
  }
  // The lanes that are left of an access to 4 bytes at the address of each lane.
  template <class F>
  Mask left_of(F&& address, AccessMode mode = AccessMode::load) {
    Access access{};
    access.mask = full_mask;
    access.affine = true;
    access.stride = static_cast<std::int64_t>(address(1) - address(0));
    for (std::uint64_t lane = 0; lane < warp_size; ++lane) {
      access.addresses[lane] = address(lane);
      access.affine =
          access.affine && address(lane) == address(0) + (address(1) - address(0)) * lane;
    }
    block.count_repeated(block.warps[0], &op, access, AddressKind::global, 4, mode);
    return access.mask;
  }
  void know(FindingKind kind) {
    PendingFinding known;
    known.finding.kind = kind;
    known.finding.count = 0;
    block.findings.push_back(known);
  }
  [[nodiscard]] std::uint64_t count() const { return block.findings.back().finding.count; }

  MicroOp op{};
  Block block{program, pool};
};

TEST_F(RepeatedLanes, are_left_where_nothing_was_reported_of_the_instruction) {
  const auto behind = [](std::uint64_t) { return std::uint64_t{0x5000}; };
  EXPECT_EQ(left_of(behind), full_mask);
  know(FindingKind::out_of_bounds);
  block.findings[0].instruction = op.instruction + 1;
  EXPECT_EQ(left_of(behind), full_mask);
  know(FindingKind::misaligned);
  EXPECT_EQ(left_of(behind), full_mask);
  EXPECT_EQ(count(), 0U);
}

TEST_F(RepeatedLanes, outside_of_all_regions_are_counted_at_once) {
  know(FindingKind::out_of_bounds);
  EXPECT_EQ(left_of([](std::uint64_t lane) { return 0x5000 + 4 * lane; }), 0U);
  EXPECT_EQ(count(), 32U);
  EXPECT_EQ(left_of([](std::uint64_t lane) { return 0x1100 + 4 * lane; }), 0U);
  EXPECT_EQ(count(), 64U);
  EXPECT_EQ(left_of([](std::uint64_t lane) { return 0x800 + 4 * lane * lane; }), Mask{1} << 23U)
      << "before the region and behind it";
  EXPECT_EQ(count(), 95U);
}

TEST_F(RepeatedLanes, in_a_region_are_counted_if_they_are_misaligned_and_that_was_reported) {
  know(FindingKind::out_of_bounds);
  const auto odd = [](std::uint64_t lane) { return 0x1001 + 4 * lane; };
  EXPECT_EQ(left_of(odd), full_mask);
  know(FindingKind::misaligned);
  EXPECT_EQ(left_of(odd), 0U);
  EXPECT_EQ(count(), 32U);
  EXPECT_EQ(left_of([](std::uint64_t lane) { return 0x1000 + 2 * lane; }), 0x55555555U);
  EXPECT_EQ(count(), 48U);
  EXPECT_EQ(left_of([](std::uint64_t lane) { return 0x1000 + lane % 2; }), 0x55555555U);
  EXPECT_EQ(left_of([](std::uint64_t) { return std::uint64_t{0x10fe}; }), full_mask)
      << "it reaches behind the end";
}

TEST_F(RepeatedLanes, that_write_what_may_only_be_read_are_outside) {
  know(FindingKind::out_of_bounds);
  const auto in_second = [](std::uint64_t lane) { return 0x2000 + 4 * lane; };
  EXPECT_EQ(left_of(in_second), full_mask);
  EXPECT_EQ(left_of(in_second, AccessMode::store), 0U);
  EXPECT_EQ(left_of(in_second, AccessMode::atomic), 0U);
}

TEST_F(RepeatedLanes, in_windows_of_other_spaces_are_left) {
  know(FindingKind::out_of_bounds);
  const auto some_shared = [](std::uint64_t lane) {
    return lane % 2 == 0 ? 0x5000 : lane % 4 == 1 ? shared_window + 4 : param_window + window_bytes;
  };
  EXPECT_EQ(left_of(some_shared), 0U) << "an address of global memory leads to no other";
  op.kind = static_cast<std::uint8_t>(AddressKind::generic);
  EXPECT_EQ(left_of(some_shared), 0xaaaaaaaaU) << "what comes behind such a lane is left, too";
}

TEST_F(RepeatedLanes, are_left_where_the_kernel_allocates_memory) {
  know(FindingKind::out_of_bounds);
  DeviceHeap heap(false);
  program.heap = &heap;
  EXPECT_EQ(left_of([](std::uint64_t) { return std::uint64_t{0x5000}; }), full_mask);
}

TEST_F(RepeatedLanes, at_many_places_are_counted_at_the_first_four) {
  know(FindingKind::out_of_bounds);
  program.regions.resize(64);
  for (std::uint64_t i = 0; i < 64; ++i) {
    program.regions[i].low = i * 0x1000;
    program.regions[i].high = i * 0x1000 + 0x100;
  }
  EXPECT_EQ(left_of([](std::uint64_t lane) { return 0x800 + (lane + lane % 2) * 0x1000; }),
            full_mask << 7U);
}

}  // namespace
}  // namespace demarc::emulate
