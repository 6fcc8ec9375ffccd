// What the emulator finds wrong in a kernel, each beside a kernel that does the same rightly.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::shared_area;

struct Mistake {
  const char* name;
  const char* declarations;
  const char* wrong;
  const char* right;
  FindingKind kind;
  const char* instruction;  // how the line at fault begins
  std::array<std::uint32_t, 3> block;
  std::array<std::uint32_t, 3> thread;
  gpu::Dim3 threads;  // per block; the grid is 2 x 1 x 1
  const char* detail;
};

// 64 words of 8 bytes in the buffer; %rd2 is the place of thread %tid.x, %r2 the block.
constexpr const char* block_number = "mov.u32 %r2, %ctaid.x;\nmov.u32 %r6, %tid.y;\n";

const Mistake mistakes[] = {
    {"a_store_behind_the_buffer",
     "",
     "st.global.u64 [%rd2+264], %rd1;",
     "st.global.u64 [%rd2+256], %rd1;",
     FindingKind::out_of_bounds,
     "st.global.u64",
     {0, 0, 0},
     {31, 0, 0},
     {32, 1, 1},
     "it lies 0 bytes after the end of the 512 bytes"},
    {"a_load_before_the_buffer_in_the_second_block_only",
     "",
     "setp.eq.u32 %p1, %r2, 1;\n@%p1 ld.global.u32 %r3, [%rd2+-8];",
     "setp.eq.u32 %p1, %r2, 2;\n@%p1 ld.global.u32 %r3, [%rd2+-8];",
     FindingKind::out_of_bounds,
     "@%p1 ld.global.u32",
     {1, 0, 0},
     {0, 0, 0},
     {32, 1, 1},
     "bytes before the 512 bytes"},
    {"a_null_pointer",
     "",
     "mov.b64 %rd5, 0;\nld.u32 %r3, [%rd5];",
     "mov.b64 %rd5, %rd1;\nld.u32 %r3, [%rd5];",
     FindingKind::out_of_bounds,
     "ld.u32",
     {0, 0, 0},
     {0, 0, 0},
     {32, 1, 1},
     "null pointer"},
    {"an_access_that_straddles_the_end",
     "",
     "st.global.v2.u64 [%rd1+504], {%rd1, %rd1};",
     "st.global.v2.u64 [%rd1+496], {%rd1, %rd1};",
     FindingKind::out_of_bounds,
     "st.global.v2",
     {0, 0, 0},
     {0, 0, 0},
     {1, 1, 1},
     "16 bytes"},
    {"an_atomic_behind_the_buffer",
     "",
     "atom.global.add.u32 %r3, [%rd1+512], 1;",
     "atom.global.add.u32 %r3, [%rd1+508], 1;",
     FindingKind::out_of_bounds,
     "atom.global",
     {0, 0, 0},
     {0, 0, 0},
     {1, 1, 1},
     "atomic of 4 bytes"},
    {"shared_memory_behind_its_end",
     shared_area,
     "mov.u32 %r3, area;\nst.shared.u32 [%r3+512], %r1;",
     "mov.u32 %r3, area;\nst.shared.u32 [%r3+508], %r1;",
     FindingKind::out_of_bounds,
     "st.shared.u32",
     {0, 0, 0},
     {0, 0, 0},
     {32, 1, 1},
     "it has 512 bytes"},
    {"local_memory_behind_its_end",
     "",
     ".local .align 4 .b8 mine[64];\nmov.u64 %rd5, mine;\nst.local.u32 [%rd5+64], %r1;",
     ".local .align 4 .b8 mine[64];\nmov.u64 %rd5, mine;\nst.local.u32 [%rd5+60], %r1;",
     FindingKind::out_of_bounds,
     "st.local.u32",
     {0, 0, 0},
     {0, 0, 0},
     {32, 1, 1},
     "local memory"},
    {"a_store_to_constant_memory",
     ".const .align 4 .b32 table[4] = {1, 2, 3, 4};\n",
     "mov.u64 %rd5, table;\ncvta.const.u64 %rd5, %rd5;\nst.u32 [%rd5], %r1;",
     "mov.u64 %rd5, table;\ncvta.const.u64 %rd5, %rd5;\nld.u32 %r3, [%rd5+12];",
     FindingKind::out_of_bounds,
     "st.u32",
     {0, 0, 0},
     {0, 0, 0},
     {1, 1, 1},
     "it is read-only"},
    {"an_odd_address",
     "",
     "setp.eq.u32 %p1, %r1, 5;\n@%p1 ld.global.u32 %r3, [%rd1+6];",
     "setp.eq.u32 %p1, %r1, 5;\n@%p1 ld.global.u16 %h3, [%rd1+6];",
     FindingKind::misaligned,
     "@%p1 ld.global.u32",
     {0, 0, 0},
     {5, 0, 0},
     {32, 1, 1},
     "must be a multiple of 4"},
    {"a_vector_at_half_its_size",
     "",
     "ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1+8];",
     "ld.global.v2.u32 {%r3, %r4}, [%rd1+8];",
     FindingKind::misaligned,
     "ld.global.v4",
     {0, 0, 0},
     {0, 0, 0},
     {1, 1, 1},
     "must be a multiple of 16"},
    {"shared_memory_never_written",
     shared_area,
     "mov.u32 %r3, area;\nst.shared.u32 [%r3], %r1;\nld.shared.u32 %r4, [%r3+4];",
     "mov.u32 %r3, area;\nst.shared.u32 [%r3], %r1;\nld.shared.u32 %r4, [%r3];",
     FindingKind::uninitialised_read,
     "ld.shared.u32",
     {0, 0, 0},
     {0, 0, 0},
     {32, 1, 1},
     "4 bytes"},
    {"local_memory_half_written",
     "",
     ".local .align 4 .b8 mine[8];\nmov.u64 %rd5, mine;\nst.local.u16 [%rd5], %h1;\nld.local.u32 "
     "%r3, [%rd5];",
     ".local .align 4 .b8 mine[8];\nmov.u64 %rd5, mine;\nmov.b16 %h1, 3;\nst.local.u16 [%rd5], "
     "%h1;\nst.local.u16 [%rd5+2], %h1;\nld.local.u32 %r3, [%rd5];",
     FindingKind::uninitialised_read,
     "ld.local.u32",
     {0, 0, 0},
     {0, 0, 0},
     {32, 1, 1},
     "were not written before"},
    {"two_warps_that_write_one_word",
     shared_area,
     "and.b32 %r3, %r1, 31;\nshl.b32 %r3, %r3, 2;\nmov.u32 %r4, area;\nadd.u32 %r3, %r3, "
     "%r4;\nst.shared.u32 [%r3], %r1;",
     "shl.b32 %r3, %r1, 2;\nmov.u32 %r4, area;\nadd.u32 %r3, %r3, %r4;\nst.shared.u32 [%r3], %r1;",
     FindingKind::shared_race,
     "st.shared.u32",
     {0, 0, 0},
     {32, 0, 0},
     {64, 1, 1},
     "thread (0,0,0) touched it"},
    {"warps_that_write_other_values_to_the_same_words",
     shared_area,
     "and.b32 %r3, %r1, 31;\n"
     "shl.b32 %r4, %r3, 4;\n"
     "mov.u32 %r5, area;\n"
     "add.u32 %r4, %r4, %r5;\n"
     "st.shared.u32 [%r4], %r1;\n",
     "and.b32 %r3, %r1, 31;\n"
     "shl.b32 %r4, %r3, 4;\n"
     "mov.u32 %r5, area;\n"
     "add.u32 %r4, %r4, %r5;\n"
     "st.shared.u32 [%r4], %r3;\n",
     FindingKind::shared_race,
     "st.shared.u32",
     {0, 0, 0},
     {32, 0, 0},
     {64, 1, 1},
     "thread (0,0,0) touched it"},
    {"warps_whose_vectors_differ_in_the_last_element",
     shared_area,
     "and.b32 %r3, %r1, 31;\n"
     "shl.b32 %r4, %r3, 4;\n"
     "mov.u32 %r5, area;\n"
     "add.u32 %r4, %r4, %r5;\n"
     "st.shared.v4.u32 [%r4], {%r3, %r5, 7, %r1};\n",
     "and.b32 %r3, %r1, 31;\n"
     "shl.b32 %r4, %r3, 4;\n"
     "mov.u32 %r5, area;\n"
     "add.u32 %r4, %r4, %r5;\n"
     "st.shared.v4.u32 [%r4], {%r3, %r5, 7, %r3};\n",
     FindingKind::shared_race,
     "st.shared.v4.u32",
     {0, 0, 0},
     {32, 0, 0},
     {64, 1, 1},
     "thread (0,0,0) touched it"},
    {"warps_that_write_other_low_bytes",
     shared_area,
     "and.b32 %r3, %r1, 31;\n"
     "shl.b32 %r4, %r3, 4;\n"
     "mov.u32 %r5, area;\n"
     "add.u32 %r4, %r4, %r5;\n"
     "st.shared.u8 [%r4], %r1;\n",
     "and.b32 %r3, %r1, 31;\n"
     "shl.b32 %r4, %r3, 4;\n"
     "mov.u32 %r5, area;\n"
     "add.u32 %r4, %r4, %r5;\n"
     "shr.u32 %r6, %r1, 5;\n"
     "mad.lo.u32 %r6, %r6, 256, %r3;\n"
     "st.shared.u8 [%r4], %r6;\n",
     FindingKind::shared_race,
     "st.shared.u8",
     {0, 0, 0},
     {32, 0, 0},
     {64, 1, 1},
     "thread (0,0,0) touched it"},
    {"warps_that_write_two_constants_to_one_word",
     shared_area,
     "mov.u32 %r5, area;\n"
     "setp.lt.u32 %p1, %r1, 32;\n"
     "@%p1 st.shared.u32 [%r5], 7;\n"
     "@!%p1 st.shared.u32 [%r5], 8;\n",
     "mov.u32 %r5, area;\n"
     "setp.lt.u32 %p1, %r1, 32;\n"
     "@%p1 st.shared.u32 [%r5], 7;\n"
     "@!%p1 st.shared.u32 [%r5], 7;\n",
     FindingKind::shared_race,
     "@!%p1 st.shared.u32",
     {0, 0, 0},
     {32, 0, 0},
     {64, 1, 1},
     "thread (0,0,0) touched it"},
    {"a_warp_that_writes_what_an_atomic_made",
     shared_area,
     "mov.u32 %r5, area;\n"
     "setp.lt.u32 %p1, %r1, 32;\n"
     "st.volatile.shared.u32 [%r5], 0;\nbar.sync 0;\n@!%p1 atom.shared.exch.b32 %r6, [%r5], 7;\n"
     "@%p1 st.shared.u32 [%r5], 7;\n",
     "mov.u32 %r5, area;\n"
     "setp.lt.u32 %p1, %r1, 32;\n"
     "st.volatile.shared.u32 [%r5], 0;\nbar.sync 0;\n@!%p1 atom.shared.exch.b32 %r6, [%r5], 7;\n"
     "bar.sync 0;\n"
     "@%p1 st.shared.u32 [%r5], 7;\n",
     FindingKind::shared_race,
     "@%p1 st.shared.u32",
     {0, 0, 0},
     {0, 0, 0},
     {64, 1, 1},
     "touched it"},
    {"a_read_of_what_another_warp_wrote_before_the_barrier",
     shared_area,
     "shl.b32 %r3, %r1, 2;\nmov.u32 %r4, area;\nadd.u32 %r3, %r3, %r4;\n"
     "setp.lt.u32 %p1, %r1, 32;\nxor.b32 %r5, %r3, 128;\n@%p1 st.shared.u32 [%r3], %r1;\n"
     "@!%p1 ld.shared.u32 %r6, [%r5];\nbar.sync 0;",
     "shl.b32 %r3, %r1, 2;\nmov.u32 %r4, area;\nadd.u32 %r3, %r3, %r4;\n"
     "setp.lt.u32 %p1, %r1, 32;\nxor.b32 %r5, %r3, 128;\n@%p1 st.shared.u32 [%r3], %r1;\n"
     "bar.sync 0;\n@!%p1 ld.shared.u32 %r6, [%r5];",
     FindingKind::shared_race,
     "@!%p1 ld.shared.u32",
     {0, 0, 0},
     {32, 0, 0},
     {64, 1, 1},
     "st.shared.u32"},
    {"a_write_of_what_another_warp_reads_before_the_barrier",
     shared_area,
     "shl.b32 %r3, %r1, 2;\nmov.u32 %r4, area;\nadd.u32 %r3, %r3, %r4;\n"
     "setp.lt.u32 %p1, %r1, 32;\nst.shared.u32 [%r3], %r1;\nbar.sync 0;\nxor.b32 %r5, %r3, 128;\n"
     "@!%p1 ld.shared.u32 %r6, [%r5];\n@%p1 st.shared.u32 [%r3], %r3;",
     "shl.b32 %r3, %r1, 2;\nmov.u32 %r4, area;\nadd.u32 %r3, %r3, %r4;\n"
     "setp.lt.u32 %p1, %r1, 32;\nst.shared.u32 [%r3], %r1;\nbar.sync 0;\nxor.b32 %r5, %r3, 128;\n"
     "@!%p1 ld.shared.u32 %r6, [%r5];\nbar.sync 0;\n@%p1 st.shared.u32 [%r3], %r3;",
     FindingKind::shared_race,
     "@%p1 st.shared.u32",
     {0, 0, 0},
     {0, 0, 0},
     {64, 1, 1},
     "ld.shared.u32"},
    {"a_plain_read_beside_atomics",
     shared_area,
     "mov.u32 %r4, area;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%r4], 0;\n"
     "setp.ge.u32 %p2, %r1, 32;\nbar.sync 0;\natom.shared.add.u32 %r5, [%r4], 1;\n"
     "@%p2 ld.shared.u32 %r5, [%r4];",
     "mov.u32 %r4, area;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%r4], 0;\nbar.sync "
     "0;\natom.shared.add.u32 %r5, [%r4], 1;\nld.volatile.shared.u32 %r5, [%r4];",
     FindingKind::shared_race,
     "atom.shared.add.u32",
     {0, 0, 0},
     {0, 0, 0},
     {64, 1, 1},
     "ld.shared.u32"},
    {"bytes_of_one_word_by_two_warps",
     shared_area,
     "mov.u32 %r4, area;\nshr.u32 %r3, %r1, 5;\nshr.u32 %r3, %r3, 1;\nadd.u32 %r3, %r3, "
     "%r4;\nst.shared.u8 [%r3], %r1;",
     "mov.u32 %r4, area;\nshr.u32 %r3, %r1, 5;\nadd.u32 %r3, %r3, %r4;\nst.shared.u8 [%r3], %r1;",
     FindingKind::shared_race,
     "st.shared.u8",
     {0, 0, 0},
     {32, 0, 0},
     {64, 1, 1},
     "thread (0,0,0)"},
    {"a_barrier_that_half_a_warp_reaches",
     "",
     "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra OVER;\nbar.sync 0;\nbra END;\nOVER: bar.sync 0;\nEND:",
     "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra OVER;\nbar.sync 0;\nOVER:",
     FindingKind::barrier_divergence,
     "bar.sync 0;",
     {0, 0, 0},
     {16, 0, 0},
     {32, 1, 1},
     "16 threads of the warp do not arrive"},
    {"warps_at_two_barriers",
     "",
     "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra ONE;\nbar.sync 1;\nbra OVER;\nONE: bar.sync 2;\nOVER:",
     "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra ONE;\nbar.sync 1;\nbra OVER;\nONE: bar.sync 1;\nOVER:",
     FindingKind::barrier_divergence,
     "ONE: bar.sync 2;",
     {0, 0, 0},
     {0, 0, 0},
     {64, 1, 1},
     "never completed"},
    {"a_barrier_for_more_threads_than_arrive",
     "",
     "bar.sync 1, 96;",
     "bar.sync 1, 64;",
     FindingKind::barrier_divergence,
     "bar.sync 1, 96;",
     {0, 0, 0},
     {0, 0, 0},
     {64, 1, 1},
     "never completed"},
    {"a_barrier_that_does_not_exist",
     "",
     "mov.u32 %r3, 16;\nbar.sync %r3;",
     "mov.u32 %r3, 15;\nbar.sync %r3;",
     FindingKind::limit,
     "bar.sync %r3;",
     {0, 0, 0},
     {0, 0, 0},
     {32, 1, 1},
     "there are 16 barriers"},
    {"a_thread_in_the_second_row",
     "",
     "setp.eq.u32 %p1, %r6, 1;\n@%p1 ld.global.u32 %r3, [%rd1+512];",
     "setp.eq.u32 %p1, %r6, 2;\n@%p1 ld.global.u32 %r3, [%rd1+512];",
     FindingKind::out_of_bounds,
     "@%p1 ld.global.u32",
     {0, 0, 0},
     {0, 1, 0},
     {8, 2, 1},
     "after the end"},
};

class Mistakes : public testing::TestWithParam<const Mistake*> {};

Result<Outcome> run_mistake(const Mistake& mistake, const std::string& text) {
  gpu::Launch launch = launch_of(2, 1, 512);
  launch.kernels[0].block = mistake.threads;
  return run_text(text, launch);
}

TEST_P(Mistakes, are_found_once_with_block_thread_instruction_and_line) {
  const Mistake& mistake = *GetParam();
  const std::string text =
      kernel_of(mistake.declarations, block_number + std::string(mistake.wrong));
  const auto outcome = run_mistake(mistake, text);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(outcome->findings.empty());
  const Finding& finding = outcome->findings[0];
  const std::string said = describe(finding, "t.ptx");
  EXPECT_EQ(outcome->findings.size(), 1U) << said;
  EXPECT_EQ(finding.kind, mistake.kind) << said;
  EXPECT_EQ(finding.block, mistake.block) << said;
  EXPECT_EQ(finding.thread, mistake.thread) << said;
  EXPECT_NE(finding.detail.find(mistake.detail), std::string::npos) << said;
  std::size_t at = 0;
  for (std::uint32_t line = 1; line < finding.line; ++line) at = text.find('\n', at) + 1;
  EXPECT_EQ(text.compare(at, std::strlen(mistake.instruction), mistake.instruction), 0)
      << "line " << finding.line << ": " << text.substr(at, text.find('\n', at) - at);
  EXPECT_NE(said.find(fmt::format("t.ptx:{}: ", finding.line)), std::string::npos) << said;
  EXPECT_NE(said.find(fmt::format("thread ({},{},{})", mistake.thread[0], mistake.thread[1],
                                  mistake.thread[2])),
            std::string::npos)
      << said;
}

TEST_P(Mistakes, are_not_found_where_the_kernel_is_right) {
  const Mistake& mistake = *GetParam();
  const auto outcome = run_mistake(
      mistake, kernel_of(mistake.declarations, block_number + std::string(mistake.right)));
  ASSERT_TRUE(outcome) << outcome.error().message;
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
}

std::vector<const Mistake*> every_mistake() {
  std::vector<const Mistake*> out;
  for (const Mistake& mistake : mistakes) out.push_back(&mistake);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, Mistakes, testing::ValuesIn(every_mistake()),
                         [](const testing::TestParamInfo<const Mistake*>& given) {
                           return std::string(given.param->name);
                         });

}  // namespace
}  // namespace demarc::emulate
