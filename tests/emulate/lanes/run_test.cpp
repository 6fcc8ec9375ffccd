// Control flow, checks and determinism on small kernels.
#include "harness.hpp"

#include <algorithm>

#include "demarc/base/files.hpp"
#include "not_run.hpp"
#include "paths.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

constexpr const char* store_r2 = "cvt.u64.u32 %rd3, %r2;\nst.global.u64 [%rd2], %rd3;";

TEST(Divergence, both_sides_of_a_branch_run_and_meet_again) {
  const auto outcome = run_text(kernel_of("",
                                          "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 "
                                          "bra EVEN;\nmov.u32 %r2, 100;\nbra MEET;\n"
                                          "EVEN:\nmov.u32 %r2, 200;\nMEET:\nactivemask.b32 "
                                          "%r4;\npopc.b32 %r4, %r4;\nadd.u32 %r2, %r2, %r4;\n") +
                                    "",
                                launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  const auto stored =
      run_text(kernel_of("", std::string("and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra "
                                         "EVEN;\nmov.u32 %r2, 100;\nbra MEET;\n"
                                         "EVEN:\nmov.u32 %r2, 200;\nMEET:\nactivemask.b32 "
                                         "%r4;\npopc.b32 %r4, %r4;\nadd.u32 %r2, %r2, %r4;\n") +
                                 store_r2),
               launch_of(1, 32, 256));
  ASSERT_TRUE(stored) << stored.error().message;
  const auto words = words_of(*stored);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(words[i], (i % 2 == 0 ? 200U : 100U) + 32U);
}

TEST(Divergence, lanes_leave_a_loop_after_their_own_number_of_trips) {
  const auto outcome =
      run_text(kernel_of("", std::string("mov.u32 %r2, 0;\nmov.u32 %r3, 0;\nLOOP:\nadd.u32 %r2, "
                                         "%r2, %r3;\nadd.u32 %r3, %r3, 1;\n"
                                         "setp.le.u32 %p1, %r3, %r1;\n@%p1 bra LOOP;\n") +
                                 store_r2),
               launch_of(1, 64, 512));
  ASSERT_TRUE(outcome) << outcome.error().message;
  const auto words = words_of(*outcome);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(words[i], i * (i + 1) / 2);
}

TEST(Divergence, lanes_that_have_ended_do_not_come_back) {
  const auto outcome = run_text(
      kernel_of("",
                std::string("setp.gt.u32 %p1, %r1, 5;\n@%p1 exit;\nmov.u32 %r2, 7;\n") + store_r2),
      launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  const auto words = words_of(*outcome);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(words[i], i <= 5 ? 7U : 0U);
}

TEST(Functions, recursion_gives_every_activation_its_own_registers) {
  const std::string fib =
      ".func (.param .b32 res) fib(.param .b32 n)\n{\n.reg .pred %q<3>;\n.reg .b32 "
      "%s<9>;\nld.param.b32 %s1, [n];\nsetp.lt.u32 %q1, %s1, 2;\n"
      "@%q1 bra DONE;\nsub.u32 %s2, %s1, 1;\n{\n.param .b32 a;\nst.param.b32 [a], %s2;\n.param "
      ".b32 r;\ncall (r), fib, (a);\nld.param.b32 %s3, [r];\n}\n"
      "sub.u32 %s4, %s1, 2;\n{\n.param .b32 a;\nst.param.b32 [a], %s4;\n.param .b32 r;\ncall (r), "
      "fib, (a);\nld.param.b32 %s5, [r];\n}\n"
      "add.u32 %s6, %s3, %s5;\nst.param.b32 [res], %s6;\nret;\nDONE:\nst.param.b32 [res], "
      "%s1;\nret;\n}\n";
  const auto outcome = run_text(
      kernel_of(
          fib,
          std::string(
              "and.b32 %r3, %r1, 7;\n{\n.param .b32 a;\nst.param.b32 [a], %r3;\n.param .b32 r;\n"
              "call (r), fib, (a);\nld.param.b32 %r2, [r];\n}\n") +
              store_r2),
      launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  const auto words = words_of(*outcome);
  const std::uint64_t expected[8] = {0, 1, 1, 2, 3, 5, 8, 13};
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(words[i], expected[i % 8]);
}

TEST(Warps, a_shuffle_down_takes_the_value_of_a_higher_lane) {
  const auto outcome = run_text(
      kernel_of(
          "", std::string("shfl.sync.down.b32 %r2|%p1, %r1, 4, 31, -1;\n@!%p1 mov.u32 %r2, 99;\n") +
                  store_r2),
      launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  const auto words = words_of(*outcome);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(words[i], i + 4 < 32 ? i + 4 : 99);
}

struct Events {
  std::vector<RunEvent> runs;
  std::vector<AccessEvent> accesses;
  void run(const RunEvent& event) { runs.push_back(event); }
  void access(const AccessEvent& event) { accesses.push_back(event); }
};

TEST(Traces, addresses_masks_and_instructions_come_back_from_a_file) {
  const std::string text = kernel_of(
      "",
      "setp.lt.u32 %p1, %r1, 20;\n@%p1 st.global.u64 [%rd2], %rd1;\nmul.lo.u32 %r2, %r1, "
      "%r1;\nand.b32 %r2, %r2, 31;\n"
      "mul.wide.u32 %rd4, %r2, 8;\nadd.s64 %rd4, %rd4, %rd1;\nld.global.u64 %rd5, [%rd4];");
  TraceRecorder direct;
  ASSERT_TRUE(run_text(text, launch_of(3, 64, 512), {}, &direct));
  const auto path = demarc::test::fresh_folder("trace") / "t.trace";
  TraceFileWriter writer(path);
  Options two;
  two.threads = 2;
  const auto written = run_text(text, launch_of(3, 64, 512), two, &writer);
  ASSERT_TRUE(written) << written.error().message;
  TraceRecorder read;
  const auto done = read_trace(path, read);
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(read.kernels().size(), 1U);
  ASSERT_EQ(read.kernels()[0].blocks.size(), 3U);
  EXPECT_EQ(read.kernels()[0].header.instructions.size(),
            direct.kernels()[0].header.instructions.size());
  for (std::size_t b = 0; b < 3; ++b)
    EXPECT_EQ(read.kernels()[0].blocks[b].words, direct.kernels()[0].blocks[b].words);
  Events events;
  std::uint32_t warp = 0;
  visit_events(TraceChunk{0, true, read.kernels()[0].blocks[0].words}, warp, events);
  ASSERT_EQ(events.accesses.size(), 3U);  // the second warp's guarded store has no lane
  EXPECT_EQ(events.accesses[0].mask, 0xfffffU);
  EXPECT_EQ(events.accesses[0].stride, 8);
  EXPECT_EQ(events.accesses[1].addresses[5], gpu::default_base_address + 8 * 25);
}

TEST(Traces, a_truncated_file_is_an_error) {
  const auto folder = demarc::test::fresh_folder("cut");
  TraceFileWriter writer(folder / "t.trace");
  ASSERT_TRUE(run_text(kernel_of("", store_r2), launch_of(1, 32, 256), {}, &writer));
  const auto bytes = read_file(folder / "t.trace");
  ASSERT_TRUE(bytes);
  ASSERT_TRUE(write_file(folder / "cut.trace", bytes->substr(0, bytes->size() / 2)));
  TraceRecorder sink;
  const auto done = read_trace(folder / "cut.trace", sink);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("cut.trace"), std::string::npos);
}

TEST(Determinism, one_and_two_threads_and_every_instruction_set_give_the_same) {
  const std::string text =
      kernel_of("",
                "mov.u32 %r3, %ctaid.x;\nmad.lo.u32 %r2, %r3, 37, %r1;\ncvt.rn.f32.u32 %f1, "
                "%r2;\nsqrt.rn.f32 %f2, %f1;\nfma.rn.f32 %f3, %f2, %f1, %f2;\n"
                "mov.b32 %r4, %f3;\natom.global.add.u32 %r5, [%rd1], %r4;\nred.global.max.u32 "
                "[%rd1+8], %r4;");
  std::vector<std::uint64_t> first;
  for (const unsigned threads : {1U, 2U}) {
    for (const auto set :
         {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
      if (set > widest_instruction_set()) {
        demarc::test::note_not_run("a processor without it", std::string(to_string(set)));
        continue;
      }
      Options options;
      options.threads = threads;
      options.instruction_set = set;
      const auto outcome = run_text(text, launch_of(50, 96, 1024), options);
      ASSERT_TRUE(outcome) << outcome.error().message;
      EXPECT_EQ(outcome->ordered_kernels.size(), 1U);
      if (first.empty()) first = words_of(*outcome);
      EXPECT_EQ(words_of(*outcome), first);
    }
  }
}

TEST(Run, progress_grows_over_all_kernels_of_a_launch) {
  gpu::Launch launch = launch_of(8, 32, 256);
  launch.kernels.push_back(launch.kernels[0]);
  launch.kernels[1].grid.x = 24;
  Options options;
  options.threads = 1;
  std::vector<double> shares;
  options.progress = [&](double share, std::string_view) { shares.push_back(share); };
  const auto outcome = run_text(kernel_of("", "st.global.u64 [%rd2], %rd1;"), launch, options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(shares.empty());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_LE(shares.front(), 0.25) << "the first kernel has a quarter of the blocks";
  EXPECT_DOUBLE_EQ(shares.back(), 1);
}

}  // namespace
}  // namespace demarc::emulate
