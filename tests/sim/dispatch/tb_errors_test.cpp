// Where the published program hangs or crashes there is an error that names the line.
#include <gtest/gtest.h>

#include "demarc/sim/dispatch/tb_report.hpp"

namespace demarc::sim {
namespace {

const std::string machine_text =
    "*sm\n2 1 1 4\n*mem\n100\n*overhead_sm\n1 0.2\n*overhead_mem\n1 0.5\n";

void expect_classic_error(const std::string& text, int status, const std::string& message) {
  const auto output = run_classic(text, "c", "rr", TbModel::simtbs, false);
  EXPECT_EQ(output.exit_status, status);
  EXPECT_EQ(output.out, "");
  EXPECT_NE(output.err.find(message), std::string::npos) << output.err;
}

TEST(ClassicErrors, kernels_out_of_order_name_the_later_line) {
  expect_classic_error(machine_text + "*kernel\n1 5 1 1 1 1\n1 4 1 1 1 1\n", 1,
                       "c:11: this kernel");
}

TEST(ClassicErrors, a_kernel_larger_than_an_sm_does_not_hang) {
  expect_classic_error(machine_text + "*kernel\n1 1 1 1 5 1\n", 1,
                       "c:10: a block of this kernel never");
}

TEST(ClassicErrors, request_zero_of_a_scheduling_resource_is_told_at_the_report) {
  expect_classic_error(machine_text + "*kernel\n1 1 1 1 0 1\n", 1, "c:10: request 0");
}

TEST(ClassicErrors, a_memory_row_at_ratio_zero_with_unused_memory_divides_by_zero) {
  expect_classic_error(
      "*sm\n2 1 1 4\n*mem\n100\n*overhead_mem\n0 0.1\n1 0.5\n*kernel\n1 1 1 1 1 0\n", 1, "c:6: ");
}

TEST(ClassicErrors, one_resource_with_two_memories_is_undefined) {
  expect_classic_error("*sm\n2 1 1 4\n*mem\n100 100\n*kernel\n1 1 1 1 1 1 1\n", 1, "c:6: ");
}

TEST(ClassicErrors, work_too_large_for_single_precision_does_not_hang) {
  expect_classic_error(machine_text + "*kernel\n1 1 1 200000000 1 1\n", 1, "c:10: a block of this");
}

TEST(ClassicErrors, refused_configurations_have_status_2_and_the_line) {
  expect_classic_error("*sm\n2 1 1 4\n \n", 2, "c:3: blanks only");
  expect_classic_error("*sm\n2 1 1 4\n\n5\n", 2, "c:4: unknown section");
  expect_classic_error("*overhead\n", 2, "c:1: unknown section");
  expect_classic_error("*sm\n2 2 1 4\n", 2, "c:2: n_sched");
  expect_classic_error("*sm\n2 1 1 4\n*kernel\n", 2, "c:3: *mem must");
  expect_classic_error("*sm\n2 1 1 4\n*overhead_sm\n0.5 0.2\n0.4 0.3\n", 2,
                       "c:5: the first column and");
  expect_classic_error(machine_text + "*kernel\n1 1 1 1 1\n", 2, "c:10: expected 6 numbers");
  expect_classic_error("*sm\r\n2 1 1 4\r\n\r\n", 2, "c:3: blanks only");
}

// The message that a text is refused with; empty: it is read.
std::string config_error(const std::string& text) {
  const auto config = parse_tb_config(text, "c");
  return config ? "" : config.error().message;
}

TEST(Grammar, every_rule_has_two_sides) {
  const std::string sm = "*sm\n2 1 1 4\n";
  const std::string both = sm + "*mem\n100\n";
  const std::string load = "*workload\n";
  const std::string ranges = "5-9 2-3 ";
  const auto repeated = [](const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
  };
  struct Rule {
    std::string right, wrong, message;
  };
  const std::vector<Rule> rules{
      {"#" + std::string(1022, 'x') + "\n" + sm, "#" + std::string(1023, 'x') + "\n" + sm,
       "c:1: longer than 1023 characters"},
      {sm, "", "c:1: no *sm section"},
      {"*general\n7\n\n" + sm, "*general\n7\n8\n", "c:3: *general holds one line"},
      {"*general\n7 x\n" + sm, "*general\nx 7\n" + sm, "c:2: expected max_simtime"},
      {sm + "\n" + "*mem\n100 200 x 300\n", sm + "*mem\n100 200 300\n",
       "c:4: expected the capacity of one or two memories"},
      {sm + "*mem\n1\n", sm + "*mem\n0\n", "c:4: every capacity must be above 0"},
      {sm + "*mem\n1\n", sm + "*mem\nx\n", "c:4: expected the capacity"},
      {sm + "*mem\n1\n", sm + "*mem\n1\n2\n", "c:5: *mem holds one line"},
      {sm + "*mem\n1\n", sm + "*mem\n1\n*mem\n1\n", "c:5: a second *mem section"},
      {sm, sm + "*mem\n", "c:3: *mem needs a line"},
      {sm, sm + sm, "c:3: a second *sm section"},
      {sm, "*sm\n2 1 1 4\n2 1 1 4\n", "c:3: *sm holds one line"},
      {sm, "*sm\n\n", "c:2: *sm needs a line"},
      {"*sm\n2 1 1 4 x 5\n", "*sm\n2 1 1\n", "c:2: expected: n_sms n_sched n_boundary"},
      {"*sm\n2 1 1" + repeated(" 4", 12) + "\n", "*sm\n2 1 1" + repeated(" 4", 13) + "\n",
       "c:2: expected: n_sms n_sched n_boundary max_1 .. max_n with n = 1..12"},
      {"*sm\n1 1 1 4\n", "*sm\n0 1 1 4\n", "c:2: n_sms and n_sched must be above 0"},
      {"*sm\n1 1 1 4\n", "*sm\n1 0 1 4\n", "c:2: n_sms and n_sched must be above 0"},
      {"*sm\n1048576 1 1 4\n", "*sm\n1048577 1 1 4\n", "c:2: n_sms is 1048577: at most 1048576"},
      {"*sm\n1 2 1 4 4\n", "*sm\n1 3 1 4 4\n", "c:2: n_sched and n_boundary may be at most"},
      {"*sm\n1 1 2 4 4\n", "*sm\n1 1 3 4 4\n", "c:2: n_sched and n_boundary may be at most"},
      {"*sm\n1 1 1 4 1\n", "*sm\n1 1 1 4 0\n", "c:2: every capacity must be above 0"},
      {both + "*kernel\n", "*overhead_sm\n", "c:1: *sm must come before this section"},
      {both + "*overhead_mem\n0.5 1\n", sm + "*overhead_mem\n", "c:3: *mem must come before"},
      {sm + "*overhead_sm\n1.5 0.2\n", sm + "*overhead_sm\n", "c:3: an overhead section needs"},
      {sm + "*overhead_sm\n0 0.2\n", sm + "*overhead_sm\n-0.1 0.2\n",
       "ratio -0.1 must be at least 0"},
      {both + "*overhead_mem\n1 0.2\n", both + "*overhead_mem\n1.1 0.2\n",
       "c:6: ratio 1.1 must be at least 0 and at most 1"},
      {sm + "*overhead_sm\n0.5 0.2 x\n", sm + "*overhead_sm\n0.5\n",
       "c:4: expected a ratio and 1 overheads, found 1 numbers"},
      {sm + "*overhead_sm\n0.5 +0.2\n", sm + "*overhead_sm\n0.5 0.2 0.3\n", "found 3 numbers"},
      {sm + "*overhead_sm\n0.5 0.2\n", sm + "*overhead_sm\n0.5 inf\n", "found 1 numbers"},
      {sm + "*overhead_sm\n0.4 0.2\n0.5 0.3\n", sm + "*overhead_sm\n0.4 0.2\n0.5 0.2\n",
       "c:5: the first column and the overheads must rise from line to line"},
      {sm + "*overhead_sm\n0.4 0.2\n", sm + "*overhead_sm\n0.4 0.2\n*overhead_sm\n",
       "c:5: this section was given before"},
      {both + "*kernel\n9 1 1 1 1 1 x\n", both + "*kernel\n9 1 1 1 1 1 1\n",
       "c:6: expected 6 numbers (type start n_tb duration, 1 requests, 1 of memory), found 7"},
      {both + "*kernel\n0 1 1 1 0 0\n", both + "*kernel\n0 0 1 1 0 0\n",
       "c:6: start, n_tb and duration must be above 0"},
      {both + "*kernel\n0 1 1 1 0 0\n", both + "*kernel\n0 1 0 1 0 0\n", "must be above 0"},
      {both + "*kernel\n0 1 1 1 0 0\n", both + "*kernel\n0 1 1 0 0 0\n", "must be above 0"},
      {load + "70\n" + sm, load + "x\n" + sm, "c:2: expected a level in per cent"},
      {load + "70\n" + sm, load + "70\n7\n" + sm, "c:3: too many lines in *workload"},
      {load + "70 " + ranges + "1-2\n5-6\n" + sm, load + "70 " + ranges + "\n" + sm,
       "c:2: expected: level ntb_range dur_range req_1 .. req_n"},
      {load + "70 " + ranges + "1-2\n5-6\n" + sm, load + "70 5 2-3 1-2\n5-6\n" + sm,
       "c:2: expected ranges a-b of the thread blocks and of the duration"},
      {load + "70 " + ranges + "1-2\n5-6\n" + sm, load + "70 5-9 2- 1-2\n5-6\n" + sm,
       "c:2: expected ranges a-b"},
      {load + "70 " + ranges + "1-2\n5-6\n" + sm, load + "70 5-9 -3 1-2\n5-6\n" + sm,
       "c:2: expected ranges a-b"},
      {load + "70 " + ranges + "1-2\n5-6\n" + sm, load + "70 " + ranges + "1-2\n" + sm,
       "c:3: *workload needs a second line with the memory ranges"},
      {load + "70 " + ranges + "1-2\n5-6 7-8 x\n" + sm,
       load + "70 " + ranges + "1-2\n5-6 7-8 9-9\n" + sm, "c:3: expected one or two memory ranges"},
      {load + "70 " + ranges + "1-2\n5-6\n" + sm, load + "70 " + ranges + "1-2\nx\n" + sm,
       "c:3: expected one or two memory ranges a-b"},
      {load + "70 " + ranges + "1-2\n5-6\n" + sm, load + "70 " + ranges + "1-2\n5-6\n7-8\n" + sm,
       "c:4: too many lines in *workload"},
      {load + "70 " + ranges + "1-2\n5-6\n" + sm, load + "70 " + ranges + "1-2 1-2\n5-6\n" + sm,
       "c:5: 1 SM resources here, 2 requests in *workload"},
      {load + "70 " + ranges + "1-2\n5-6\n" + sm,
       load + "70 " + ranges + repeated("1-2 ", 13) + "\n5-6\n" + sm,
       "c:2: at most 12 SM resources"},
      {load + "70 " + ranges + "1-1024\n5-6\n" + sm, load + "70 " + ranges + "1-1025\n5-6\n" + sm,
       "request range '1-1025': expected a-b with a <= b and at most 1024 values"},
      {load + "70 " + ranges + "2-2\n5-6\n" + sm, load + "70 " + ranges + "3-2\n5-6\n" + sm,
       "request range '3-2'"},
      {load + "70 " + ranges + "3,1,2\n5-6\n" + sm, load + "70 " + ranges + "3,x\n5-6\n" + sm,
       "expected a-b or a,b,c"},
  };
  for (const Rule& rule : rules) {
    EXPECT_EQ(config_error(rule.right), "") << rule.right;
    EXPECT_NE(config_error(rule.wrong).find(rule.message), std::string::npos)
        << rule.wrong << "\n"
        << config_error(rule.wrong);
  }
}

TEST(Grammar, a_workload_arrives_whole) {
  const TbWorkload whole =
      parse_tb_config("*workload\n70 5-9 2-3 1-3 8,4\n20-30 40-50\n*sm\n1 1 1 4 4\n", "c")
          ->workload;
  EXPECT_TRUE(whole.present);
  EXPECT_FALSE(whole.from_kernels);
  EXPECT_EQ(whole.level, 70U);
  EXPECT_EQ(whole.line, 1U);
  EXPECT_EQ(whole.n_tb.low, 5U);
  EXPECT_EQ(whole.n_tb.high, 9U);
  EXPECT_EQ(whole.duration.low, 2U);
  EXPECT_EQ(whole.duration.high, 3U);
  EXPECT_EQ(whole.requests, (std::vector<std::vector<std::uint32_t>>{{1, 2, 3}, {8, 4}}));
  ASSERT_EQ(whole.memory.size(), 2U);
  EXPECT_EQ(whole.memory[1].low, 40U);
  EXPECT_EQ(whole.memory[1].high, 50U);
  EXPECT_TRUE(parse_tb_config("*workload\n80\n*sm\n1 1 1 4\n", "c")->workload.from_kernels);
}

TEST(ClassicErrors, an_unknown_policy_has_status_1) {
  EXPECT_EQ(run_classic(machine_text, "c", "nope", TbModel::simtbs, false).exit_status, 1);
}

TEST(Classic, no_kernels_print_what_zero_by_zero_gives) {
  const auto output = run_classic(machine_text, "c", "rr", TbModel::simtbs, true);
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
  const auto config = parse_tb_config(machine_text + "*kernel\n-1 +1 1 1 -5 -0\n", "c");
  ASSERT_TRUE(config) << config.error().message;
  const KernelIndex only;
  EXPECT_EQ(config->kernels[only].type, 4294967295U);
  EXPECT_EQ(config->kernels[only].start, 1_ticks);
  EXPECT_EQ(config->kernel_fields(only)[0], 4294967291U);
  EXPECT_EQ(config->kernel_fields(only)[1], 0U);
}

TEST(Grammar, what_the_published_program_takes_or_refuses) {
  const auto status = [](const std::string& text) {
    return run_classic(text, "c", "rr", TbModel::simtbs, false).exit_status;
  };
  const std::string kernel = "*kernel\n1 1 1 1 1 1\n";
  EXPECT_EQ(status(machine_text + "# between\n\n# again\n" + kernel + "# inside\n2 2 1 1 1 1\n"),
            0);
  EXPECT_EQ(status(machine_text + kernel + "\n*kernel\n2 2 1 1 1 1\n"), 0);  // may come again
  EXPECT_EQ(status("*general\n7\n*general\n9 ticks\n" + machine_text + kernel), 0);
  EXPECT_EQ(status(machine_text + "*sm\n2 1 1 4\n" + kernel), 2);    // exactly one
  EXPECT_EQ(status(machine_text + "*overhead\n1 1\n" + kernel), 2);  // the README's name
  EXPECT_EQ(status(machine_text + " *kernel\n1 1 1 1 1 1\n"), 2);    // not in column 0
  EXPECT_EQ(status(machine_text + "\t#\n" + kernel), 2);
  EXPECT_EQ(status(machine_text + "*kernel\n1\t1  1 1\t1 1\n"), 0);  // TABs and blanks
  EXPECT_EQ(status(machine_text + "*kernel\n1 0 1 1 1 1\n"), 2);     // start above 0
  EXPECT_EQ(status(machine_text + "*kernel\n1 1 1 1 1 1 1\n"), 2);   // exact count
  EXPECT_EQ(status(machine_text + "*kernel\n1 1 1 1 1 x\n"), 2);
  EXPECT_EQ(status(machine_text + kernel + "#" + std::string(1022, 'x') + "\n"), 0);
  EXPECT_EQ(status(machine_text + kernel + "#" + std::string(1023, 'x') + "\n"),
            2);  // 1023 at most
}

TEST(Corrected, kernels_in_any_order_and_waiting_for_memory) {
  const auto config = parse_tb_config(machine_text + "*kernel\n1 5 1 3 1 60\n1 1 2 3 1 60\n", "c");
  ASSERT_TRUE(config) << config.error().message;
  TbOptions options;
  EXPECT_FALSE(simulate(*config, options));
  options.model = TbModel::corrected;
  const auto run = simulate(*config, options);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_FALSE(run->out_of_memory);
  EXPECT_EQ(run->finished_blocks, 3U);
  EXPECT_GT(run->kernels[KernelIndex(0)].first_run, 5_ticks);
}

TEST(ClassicErrors, a_memory_request_below_zero_is_told_with_its_line) {
  const std::string message =
      "c:10: a memory request of this kernel is below 0; it must be 0 or more";
  expect_classic_error(machine_text + "*kernel\n1 1 1 1 1 -5\n", 1, message);
  const auto config = parse_tb_config(machine_text + "*kernel\n1 1 1 1 1 -05\n", "c");
  ASSERT_TRUE(config);
  EXPECT_NE(simulate(*config, {.model = TbModel::corrected}).error().message.find(message),
            std::string::npos);
  EXPECT_TRUE(simulate(*parse_tb_config(machine_text + "*kernel\n1 1 1 1 1 -0\n", "c"), {}));
  // The second memory's too, and that of 2020's grammar.
  const auto two = parse_tb_config("*sm\n1 2 2 4 4\n*mem\n9 9\n*kernel\n1 1 1 1 1 1 2 -3\n", "c");
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_NE(simulate(*two, {.model = TbModel::corrected}).error().message.find("c:6: a memory"),
            std::string::npos);
}

}  // namespace
}  // namespace demarc::sim
