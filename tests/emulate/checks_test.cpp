// What the emulator finds wrong in a kernel, each beside a kernel that does the same rightly.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;

struct Mistake {
  const char* name;
  const char* declarations;
  const char* wrong;
  const char* right;
  FindingKind kind;
  const char* instruction;  // how the line at fault begins
  std::array<std::uint32_t, 3> block;
  std::array<std::uint32_t, 3> thread;
  gpu::Dim3 threads;  // of a block; the grid is 2 x 1 x 1
  const char* detail;
};

// 64 words of 8 bytes in the buffer; %rd2 is the place of thread %tid.x, %r2 the block.
constexpr const char* block_number = "mov.u32 %r2, %ctaid.x;\nmov.u32 %r6, %tid.y;\n";
constexpr const char* shared_area = ".shared .align 16 .b8 area[512];\n";

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
     "mov.u32 %r4, area;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%r4], 0;\nbar.sync "
     "0;\natom.shared.add.u32 %r5, [%r4], 1;\nld.shared.u32 %r5, [%r4];",
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
     "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra OVER;\nbar.sync 0;\nOVER:",
     "setp.lt.u32 %p1, %r1, 0;\n@%p1 bra OVER;\nbar.sync 0;\nOVER:",
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

TEST(Checks, a_buffer_without_contents_must_be_written_before_it_is_read) {
  const std::string read = kernel_of("", "ld.global.u64 %rd5, [%rd2];");
  const std::string both =
      kernel_of("", "st.global.u64 [%rd2], %rd1;\nld.global.u64 %rd5, [%rd2];");
  Options options;
  options.uninitialised_buffers = {0};
  const auto wrong = run_text(read, launch_of(1, 32, 256), options);
  ASSERT_TRUE(wrong) << wrong.error().message;
  ASSERT_EQ(wrong->findings.size(), 1U);
  EXPECT_EQ(wrong->findings[0].kind, FindingKind::uninitialised_read);
  const auto right = run_text(both, launch_of(1, 32, 256), options);
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_TRUE(right->findings.empty());
}

TEST(Checks, a_loop_without_an_end_is_a_hang) {
  Options options;
  options.instruction_limit = 200'000;
  const auto outcome = run_text(kernel_of("", "LOOP:\nadd.u32 %r3, %r3, 1;\nbra LOOP;"),
                                launch_of(1, 32, 256), options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::hang);
}

TEST(Checks, a_block_without_an_end_ends_the_run_at_the_limit_of_a_block) {
  // More than a turn of one warp, much less than a turn of all of them.
  for (const std::uint32_t grid : {1U, 1000U}) {
    Options options;
    options.instruction_limit = 3'000;
    const auto outcome = run_text(kernel_of("", "LOOP:\nadd.u32 %r3, %r3, 1;\nbra LOOP;"),
                                  launch_of(grid, 1024, 8192), options);
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_EQ(outcome->findings.size(), 1U);
    EXPECT_EQ(outcome->findings[0].count, 1U);
    EXPECT_EQ(outcome->findings[0].instruction, "add.u32 %r3, %r3, 1;");
    EXPECT_EQ(outcome->findings[0].line, 16U);
    EXPECT_NE(outcome->findings[0].detail.find("more than 3000 warp instructions"),
              std::string::npos);
    EXPECT_LT(outcome->kernels[0].warp_instructions, 3'400U);
  }
}

// One thread that spins is as slow to emulate as a warp that does.
TEST(Checks, the_limit_of_a_block_counts_a_warp_with_one_thread_like_a_whole_one) {
  for (const std::uint32_t threads : {1U, 32U}) {
    Options options;
    options.instruction_limit = 1'000;
    const auto outcome =
        run_text(kernel_of("", "LOOP:\nbra LOOP;"), launch_of(1, threads, 256), options);
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_EQ(outcome->findings.size(), 1U);
    EXPECT_GT(outcome->kernels[0].warp_instructions, 1'000U);
    EXPECT_LT(outcome->kernels[0].warp_instructions, 1'100U);
  }
}

TEST(Checks, the_kernels_after_one_without_an_end_do_not_run) {
  Options options;
  options.instruction_limit = 1'000;
  gpu::Launch launch = launch_of(1, 32, 256);
  launch.kernels.push_back(launch.kernels[0]);
  const auto outcome = run_text(kernel_of("", "LOOP:\nbra LOOP;"), launch, options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->kernels.size(), 1U);
}

TEST(Checks, a_block_may_execute_as_many_instructions_as_the_limit) {
  const std::string text = kernel_of("", "bar.sync 0;\nst.global.u64 [%rd2], %rd1;");
  const auto free = run_text(text, launch_of(2, 256, 2048));
  ASSERT_TRUE(free) << free.error().message;
  const std::uint64_t needed = free->kernels[0].warp_instructions / 2;
  Options options;
  options.instruction_limit = needed;
  const auto enough = run_text(text, launch_of(2, 256, 2048), options);
  ASSERT_TRUE(enough) << enough.error().message;
  EXPECT_TRUE(enough->findings.empty());
  EXPECT_EQ(enough->kernels[0].thread_instructions, free->kernels[0].thread_instructions);
  options.instruction_limit = needed / 2;
  const auto short_of_it = run_text(text, launch_of(2, 256, 2048), options);
  ASSERT_TRUE(short_of_it) << short_of_it.error().message;
  ASSERT_EQ(short_of_it->findings.size(), 1U);
  EXPECT_EQ(short_of_it->findings[0].kind, FindingKind::hang);
}

TEST(Checks, more_shared_memory_than_a_block_can_have_is_refused) {
  gpu::Launch launch = launch_of(1, 32, 256);
  launch.kernels[0].dynamic_shared_bytes = 227 * 1024;
  EXPECT_TRUE(run_text(kernel_of("", ""), launch));
  const auto both = run_text(kernel_of(shared_area, "mov.u32 %r3, area;"), launch);
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().message.find("232960 bytes of shared memory, 232448 of them dynamic"),
            std::string::npos)
      << both.error().message;
  ++launch.kernels[0].dynamic_shared_bytes;
  const auto dynamic = run_text(kernel_of("", ""), launch);
  ASSERT_FALSE(dynamic);
  EXPECT_NE(dynamic.error().message.find("232449 bytes of dynamic shared memory"),
            std::string::npos)
      << dynamic.error().message;
}

TEST(Checks, what_a_card_does_otherwise_is_named_once_an_instruction_where_it_stands_first) {
  const auto outcome =
      run_text(kernel_of("",
                         "ex2.approx.f32 %f1, %f0;\nmul.rn.f32 %f2, %f1, %f1;\n"
                         "mov.u64 %rd3, %clock64;\nex2.approx.f32 %f3, %f1;\n"
                         "div.rn.f32 %f3, %f3, %f2;\ncos.approx.ftz.f32 %f4, %f3;\n"
                         "div.full.f32 %f4, %f4, %f3;"),
               launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  const auto& said = outcome->approximations;
  ASSERT_EQ(said.size(), 4U);
  for (const auto& one : said) EXPECT_EQ(one.severity, ptx::Severity::approximated);
  EXPECT_EQ(said[0].text, "ex2.approx.f32");
  EXPECT_EQ(ptx::format(said[0], "t.ptx"),
            "t.ptx:15:1: approximated: computed in double precision and rounded; a card's last "
            "bits may differ\n  ex2.approx.f32");
  EXPECT_EQ(said[1].text, "%clock64");
  EXPECT_EQ(said[1].line, 17U);
  EXPECT_EQ(said[2].text, "cos.approx.ftz.f32");
  EXPECT_EQ(said[3].message,
            "multiplied by the rounded reciprocal; a card's reciprocal may differ in its last bit");
  const auto exact = run_text(kernel_of("", "sqrt.rn.f32 %f1, %f0;"), launch_of(1, 32, 256));
  ASSERT_TRUE(exact) << exact.error().message;
  EXPECT_TRUE(exact->approximations.empty());
}

// The register may lie below zero: compilers fold a distance into it that the offset gives back.
TEST(Checks, an_address_in_a_register_of_32_bits_wraps_with_its_offset) {
  const char* const accesses[] = {
      // The same for all lanes, and one a lane.
      "mov.u32 %r3, area;\nst.shared.u32 [%r3+64], %r0;\nsub.u32 %r4, %r3, 1280;\n"
      "ld.shared.u32 %r5, [%r4+1344];",
      "mul.lo.u32 %r6, %r1, 4;\nmov.u32 %r3, area;\nadd.u32 %r3, %r3, %r6;\n"
      "st.shared.u32 [%r3+64], %r0;\nsub.u32 %r4, %r3, 1280;\nld.shared.u32 %r5, [%r4+1344];"};
  for (const std::string access : accesses) {
    const auto outcome = run_text(
        kernel_of(shared_area, "mov.u32 %r0, 77;\n" + access +
                                   "\ncvt.u64.u32 %rd3, %r5;\nst.global.u64 [%rd2], %rd3;"),
        launch_of(1, 1, 8));
    ASSERT_TRUE(outcome) << outcome.error().message;
    for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
    EXPECT_EQ(test::words_of(*outcome)[0], 77U);
  }
}

TEST(Checks, the_source_line_is_named_where_the_ptx_has_it) {
  const auto outcome = run_text(
      "\n.version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"halo.cu\"\n"
      ".visible .entry k(.param .u64 out)\n{\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [out];\n"
      ".loc 1 17 5\nld.global.u64 %rd2, [%rd1+4096];\nret;\n}\n",
      launch_of(1, 1, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].source, "halo.cu:17");
}

TEST(Checks, findings_of_many_threads_are_counted_and_do_not_depend_on_the_number_of_workers) {
  const std::string text = kernel_of("", "st.global.u64 [%rd2+256], %rd1;");
  for (const unsigned threads : {1U, 2U}) {
    Options options;
    options.threads = threads;
    const auto outcome = run_text(text, launch_of(40, 32, 256), options);
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_EQ(outcome->findings.size(), 1U);
    EXPECT_EQ(outcome->findings[0].count, 40U * 32U);
    EXPECT_EQ(outcome->findings[0].block[0], 0U);
  }
}

TEST(Checks, without_checks_races_and_uninitialised_reads_pass) {
  Options options;
  options.check_races = false;
  options.check_uninitialised = false;
  const auto outcome = run_text(
      kernel_of(shared_area,
                "mov.u32 %r3, area;\nst.shared.u32 [%r3], %r1;\nld.shared.u32 %r4, [%r3+4];"),
      launch_of(1, 64, 512), options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->findings.empty());
}

}  // namespace
}  // namespace demarc::emulate
