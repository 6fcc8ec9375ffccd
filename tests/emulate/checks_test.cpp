// When the emulator looks for mistakes, where runs end, and what it says of what a card does
// otherwise.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::shared_area;

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
