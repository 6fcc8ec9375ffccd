// Where the published program hangs or crashes there is an error that names the line.
#include <gtest/gtest.h>

#include "demarc/sim/dispatch/tb_report.hpp"

namespace demarc::sim {
namespace {

const std::string machine = "*sm\n2 1 1 4\n*mem\n100\n*overhead_sm\n1 0.2\n*overhead_mem\n1 0.5\n";

void expect_classic_error(const std::string& text, int status, const std::string& message) {
  const auto output = run_classic(text, "c", "rr", TbModel::simtbs, false);
  EXPECT_EQ(output.exit_status, status);
  EXPECT_EQ(output.out, "");
  EXPECT_NE(output.err.find(message), std::string::npos) << output.err;
}

TEST(ClassicErrors, kernels_out_of_order_name_the_later_line) {
  expect_classic_error(machine + "*kernel\n1 5 1 1 1 1\n1 4 1 1 1 1\n", 1, "c:11: this kernel");
}

TEST(ClassicErrors, a_kernel_larger_than_an_sm_does_not_hang) {
  expect_classic_error(machine + "*kernel\n1 1 1 1 5 1\n", 1, "c:10: a block of this kernel never");
}

TEST(ClassicErrors, request_zero_of_a_scheduling_resource_is_told_at_the_report) {
  expect_classic_error(machine + "*kernel\n1 1 1 1 0 1\n", 1, "c:10: request 0");
}

TEST(ClassicErrors, a_memory_row_at_ratio_zero_with_unused_memory_divides_by_zero) {
  expect_classic_error(
      "*sm\n2 1 1 4\n*mem\n100\n*overhead_mem\n0 0.1\n1 0.5\n*kernel\n1 1 1 1 1 0\n", 1, "c:6: ");
}

TEST(ClassicErrors, one_resource_with_two_memories_is_undefined) {
  expect_classic_error("*sm\n2 1 1 4\n*mem\n100 100\n*kernel\n1 1 1 1 1 1 1\n", 1, "c:6: ");
}

TEST(ClassicErrors, work_too_large_for_single_precision_does_not_hang) {
  expect_classic_error(machine + "*kernel\n1 1 1 200000000 1 1\n", 1, "c:10: a block of this");
}

TEST(ClassicErrors, refused_configurations_have_status_2_and_the_line) {
  expect_classic_error("*sm\n2 1 1 4\n \n", 2, "c:3: blanks only");
  expect_classic_error("*sm\n2 1 1 4\n\n5\n", 2, "c:4: unknown section");
  expect_classic_error("*overhead\n", 2, "c:1: unknown section");
  expect_classic_error("*sm\n2 2 1 4\n", 2, "c:2: n_sched");
  expect_classic_error("*sm\n2 1 1 4\n*kernel\n", 2, "c:3: *mem must");
  expect_classic_error("*sm\n2 1 1 4\n*overhead_sm\n0.5 0.2\n0.4 0.3\n", 2, "c:5: ratio and");
  expect_classic_error(machine + "*kernel\n1 1 1 1 1\n", 2, "c:10: expected 6 numbers");
  expect_classic_error("*sm\r\n2 1 1 4\r\n\r\n", 2, "c:3: blanks only");
}

TEST(ClassicErrors, an_unknown_policy_has_status_1) {
  EXPECT_EQ(run_classic(machine, "c", "nope", TbModel::simtbs, false).exit_status, 1);
}

TEST(Classic, no_kernels_print_what_zero_by_zero_gives) {
  const auto output = run_classic(machine, "c", "rr", TbModel::simtbs, true);
  EXPECT_EQ(output.exit_status, 0);
  EXPECT_EQ(output.out,
            "policy: rr\nsimulation end: 0\nSM utilization:  -nan%\nkernel statistics:\n"
            "Mem: -nan\n\nTB throughput: -nan\n");
}

TEST(Classic, sections_match_by_prefix_and_carriage_returns_are_harmless) {
  const std::string text =
      "*smurf\r\n2 1 1 4\r\n*memory\r\n100 text\r\n# comment\r\n*kernels\r\n1 1 1 1 1 1 tail\r\n";
  EXPECT_EQ(run_classic(text, "c", "rr", TbModel::simtbs, false).exit_status, 0);
}

TEST(Grammar, a_number_with_a_sign_wraps_around_in_32_bits) {
  const auto config = parse_tb_config(machine + "*kernel\n-1 +1 1 1 -5 -0\n", "c");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->kernels[0].type, 4294967295U);
  EXPECT_EQ(config->kernels[0].start, 1U);
  EXPECT_EQ(config->kernel_fields(0)[0], 4294967291U);
  EXPECT_EQ(config->kernel_fields(0)[1], 0U);
}

TEST(Grammar, what_the_published_program_takes_or_refuses) {
  const auto status = [](const std::string& text) {
    return run_classic(text, "c", "rr", TbModel::simtbs, false).exit_status;
  };
  const std::string kernel = "*kernel\n1 1 1 1 1 1\n";
  EXPECT_EQ(status(machine + "# between\n\n# again\n" + kernel + "# inside\n2 2 1 1 1 1\n"), 0);
  EXPECT_EQ(status(machine + kernel + "\n*kernel\n2 2 1 1 1 1\n"), 0);  // may come again
  EXPECT_EQ(status("*general\n7\n*general\n9 ticks\n" + machine + kernel), 0);
  EXPECT_EQ(status(machine + "*sm\n2 1 1 4\n" + kernel), 2);    // exactly one
  EXPECT_EQ(status(machine + "*overhead\n1 1\n" + kernel), 2);  // the README's name
  EXPECT_EQ(status(machine + " *kernel\n1 1 1 1 1 1\n"), 2);    // not in column 0
  EXPECT_EQ(status(machine + "\t#\n" + kernel), 2);
  EXPECT_EQ(status(machine + "*kernel\n1\t1  1 1\t1 1\n"), 0);  // TABs and blanks
  EXPECT_EQ(status(machine + "*kernel\n1 0 1 1 1 1\n"), 2);     // start above 0
  EXPECT_EQ(status(machine + "*kernel\n1 1 1 1 1 1 1\n"), 2);   // exact count
  EXPECT_EQ(status(machine + "*kernel\n1 1 1 1 1 x\n"), 2);
  EXPECT_EQ(status(machine + kernel + "#" + std::string(1022, 'x') + "\n"), 0);
  EXPECT_EQ(status(machine + kernel + "#" + std::string(1023, 'x') + "\n"), 2);  // 1023 at most
}

TEST(Corrected, kernels_in_any_order_and_waiting_for_memory) {
  const auto config = parse_tb_config(machine + "*kernel\n1 5 1 3 1 60\n1 1 2 3 1 60\n", "c");
  ASSERT_TRUE(config) << config.error().message;
  TbOptions options;
  EXPECT_FALSE(simulate(*config, options));
  options.model = TbModel::corrected;
  const auto run = simulate(*config, options);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_FALSE(run->out_of_memory);
  EXPECT_EQ(run->finished_blocks, 3U);
  EXPECT_GT(run->kernels[0].first_run, 5U);
}

}  // namespace
}  // namespace demarc::sim
