// The grammar of May 2020 and the machine that its costs are for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/sim/dispatch/tb_generate.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"

namespace demarc::sim {
namespace {

using testing::HasSubstr;

const std::string tables = "*overhead_mem\n50 0.5\n100 1\n*overhead_sm\n2 0.1\n4 0.2\n";
const std::string machine_of_2020 = "*general\n90\n*sm\n2 4\n*mem\n100\n" + tables;

std::string error_of(const std::string& text) {
  const auto config = parse_tb_config(text, "c");
  return config ? "" : config.error().message;
}

TEST(GrammarOf2020, is_told_by_the_line_of_the_sms_and_printed_as_it_was_read) {
  const std::string text =
      "*general\n90\n*sm\n2 4\n*mem\n100\n*overhead_mem\n50 0.500000\n100 1.000000\n"
      "*overhead_sm\n2 0.100000\n4 0.200000\n*kernel\n3 2 4 10 7\n";
  const auto config = parse_tb_config(text, "c");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->grammar, TbGrammar::of_2020);
  EXPECT_EQ(config->max_simtime, TbTicks(90));
  EXPECT_EQ(config->sm.n_sms, 2U);
  EXPECT_EQ(config->sm.max, std::vector<std::uint32_t>{4});
  EXPECT_EQ(config->memory, std::vector<std::uint32_t>{100});
  const TbKernel& kernel = *config->kernels.begin();
  EXPECT_EQ(kernel.start, TbTicks(3));
  EXPECT_EQ(kernel.n_tb, 2U);
  EXPECT_EQ(kernel.duration, TbTicks(7));
  EXPECT_EQ(config->kernel_fields(KernelIndex(0))[0], 4U);
  EXPECT_EQ(config->kernel_fields(KernelIndex(0))[1], 10U);
  EXPECT_EQ(print_tb_config(*config), text);
  // The other models take it too.
  for (const TbModel model : {TbModel::simtbs, TbModel::corrected}) {
    EXPECT_TRUE(simulate(*config, {.model = model})) << to_string(model);
  }
}

TEST(GrammarOf2020, has_sections_in_any_order_and_comments_and_a_load_to_draw_from) {
  const auto config = parse_tb_config("*kernel\n1 1 1 1 1\n#\n\n*workload\n70 1,4 5-9 2-6 x\n" +
                                          tables + "*mem\n100\n*sm\n2 4\n*kernel\n2 1 1 1 1\n",
                                      "c");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->kernels.size(), 2U);
  EXPECT_EQ(config->workload.level, 70U);
  EXPECT_EQ(config->workload.requests, (std::vector<std::vector<std::uint32_t>>{{1, 4}}));
  EXPECT_EQ(config->workload.n_tb.high, 9U);
  EXPECT_EQ(config->workload.duration.low, 2U);
  EXPECT_EQ(config->workload.line, 5U);
}

TEST(GrammarOf2020, refuses_with_the_line_what_that_program_does_not_take) {
  const std::string rest = "*mem\n100\n" + tables;
  EXPECT_THAT(error_of("*sm\n2 1\n" + rest), HasSubstr("c:2: a capacity of 1 units"));
  EXPECT_THAT(error_of("*sm\n2 5000000\n" + rest), HasSubstr("c:2: a capacity of 5000000"));
  EXPECT_THAT(error_of("*sm\n0 4\n" + rest), HasSubstr("c:2: 0 SMs"));
  EXPECT_THAT(error_of("*sm\n2 4\n2 4\n" + rest), HasSubstr("c:3: *sm holds one line"));
  EXPECT_THAT(error_of("*sm\n2 4\n*sm\n2 4\n" + rest), HasSubstr("c:3: this section was given"));
  EXPECT_THAT(error_of("*sm\n2 4\n*mem\n100 3\n" + tables),
              HasSubstr("c:4: expected the capacity"));
  EXPECT_THAT(error_of("*sm\n2 4\n*mem\n100\n100\n" + tables),
              HasSubstr("c:5: *mem holds one line"));
  EXPECT_THAT(error_of("*sm\n2 4\n*mem\n100\n*mem\n9\n" + tables), HasSubstr("c:5: this section"));
  EXPECT_THAT(error_of("*sm\n2 4\n" + tables), HasSubstr("no *mem section"));
  EXPECT_THAT(error_of("*sm\n2 4\n*mem\n100\n*overhead_sm\n4 1\n"),
              HasSubstr("no rows in *overhead_mem"));
  EXPECT_THAT(error_of("*sm\n2 4\n*mem\n100\n*overhead_mem\n100 1\n"),
              HasSubstr("no rows in *overhead_sm"));
  EXPECT_THAT(error_of(machine_of_2020 + "5 0.3\n"),
              HasSubstr("c:13: the last row of *overhead_sm is for 5 units"));
  EXPECT_THAT(error_of(machine_of_2020 + "4 0.3\n"), HasSubstr("c:13: the first column and"));
  EXPECT_THAT(error_of(machine_of_2020 + "5 0.2\n"), HasSubstr("c:13: the first column and"));
  const std::string open = "*sm\n2 4\n*mem\n100\n*overhead_sm\n";
  EXPECT_THAT(error_of(open + "1 0.3\n"), HasSubstr("c:6: 1 units with overhead 0.3"));
  EXPECT_THAT(error_of(open + "2 0\n"), HasSubstr("c:6: 2 units with overhead 0"));
  EXPECT_THAT(error_of(open + "2\n"), HasSubstr("c:6: expected the units"));
  EXPECT_THAT(error_of(open + "2.5 1\n"), HasSubstr("c:6: expected the units"));
  EXPECT_THAT(error_of(machine_of_2020 + "*kernel\n1 1 1 1\n"), HasSubstr("c:14: expected start"));
  EXPECT_THAT(error_of(machine_of_2020 + "*kernel\n1 1 0 1 1\n"), HasSubstr("c:14: a block asks"));
  EXPECT_THAT(error_of(machine_of_2020 + "*kernel\n0 1 1 1 1\n"), HasSubstr("c:14: start, n_tb"));
  EXPECT_THAT(error_of(machine_of_2020 + "*kernel\n1 0 1 1 1\n"), HasSubstr("c:14: start, n_tb"));
  EXPECT_THAT(error_of(machine_of_2020 + "*kernel\n1 1 1 1 0\n"), HasSubstr("c:14: start, n_tb"));
  EXPECT_THAT(error_of(machine_of_2020 + "*workload\n70 1-4 5 2-6\n"),
              HasSubstr("c:14: expected: level"));
  EXPECT_THAT(error_of(machine_of_2020 + "*workload\n70 1-4 5-9 2-6\n1 1-4 5-9 2-6\n"),
              HasSubstr("c:15: *workload holds one line"));
  EXPECT_THAT(error_of(machine_of_2020 + "*workload\n7 1 5-9 2-6\n*workload\n7 1 5-9 2-6\n"),
              HasSubstr("c:15: this section"));
  EXPECT_THAT(error_of(machine_of_2020 + "\n7\n"), HasSubstr("c:14: unknown section"));
}

// Under simtbs-2020 the machine of 2021's grammar has to be one that the program knows.
TEST(UnitCosts, are_of_one_resource_and_one_memory_with_rows_at_whole_units) {
  const auto of = [](const std::string& text) {
    const auto config = parse_tb_config(text + "*kernel\n1 1 1 1 1 1\n", "c");
    EXPECT_TRUE(config) << config.error().message;
    const auto run = simulate(*config, {.model = TbModel::simtbs_2020});
    return run ? "" : run.error().message;
  };
  const std::string sm = "*sm\n2 1 1 4\n*mem\n100\n";
  const std::string sm_rows = "*overhead_sm\n0.5 0.2\n1 0.3\n";
  EXPECT_EQ(of(sm + sm_rows + "*overhead_mem\n0.29 0.5\n1 0.6\n"), "");
  EXPECT_THAT(of(sm + sm_rows + "*overhead_mem\n0.295 0.5\n1 0.6\n"),
              HasSubstr("c:9: a row at 0.295 of 100"));
  EXPECT_THAT(of(sm + sm_rows + "*overhead_mem\n0.01 0.5\n1 0.6\n"),
              HasSubstr("c:9: a row at 0.01"));
  EXPECT_THAT(of(sm + sm_rows + "*overhead_mem\n0.5 0.5\n"),
              HasSubstr("*overhead_mem does not end"));
  EXPECT_THAT(of(sm + sm_rows), HasSubstr("*overhead_mem does not end"));
  EXPECT_THAT(of(sm + "*overhead_mem\n1 0.6\n"), HasSubstr("*overhead_sm does not end"));
  EXPECT_THAT(of("*sm\n2 1 1 4\n*mem\n5000000\n" + sm_rows + "*overhead_mem\n1 0.6\n"),
              HasSubstr("a capacity of 5000000 units"));
  const auto two = parse_tb_config("*sm\n2 1 1 4 4\n*mem\n9\n*kernel\n1 1 1 1 1 1 1\n", "c");
  EXPECT_THAT(simulate(*two, {.model = TbModel::simtbs_2020}).error().message,
              HasSubstr("2 SM resources and 1 memories"));
  const auto memories = parse_tb_config("*sm\n2 1 1 4 4\n*mem\n9 9\n", "c");
  EXPECT_FALSE(simulate(*memories, {.model = TbModel::simtbs_2020}));
}

TEST(RulesOf2020, where_that_program_hangs_or_crashes_there_is_an_error) {
  const auto error = [](const std::string& kernels, const std::string& general = "") {
    const auto got = run_classic(general + machine_of_2020.substr(12) + "*kernel\n" + kernels, "c",
                                 "rr", TbModel::simtbs_2020, false);
    EXPECT_EQ(got.exit_status, 1);
    return got.err;
  };
  EXPECT_THAT(error("2 1 1 1 1\n1 1 1 1 1\n"), HasSubstr("c:13: this kernel starts at 1"));
  EXPECT_THAT(error("1 1 5 1 1\n"), HasSubstr("c:12: a block of this kernel never finds"));
  EXPECT_THAT(error("1 1 1 0 1\n"), HasSubstr("c:12: a block of this kernel runs while no memory"));
  EXPECT_THAT(error("1 1 1 1 200000000\n"), HasSubstr("c:12: a block of this kernel never ends"));
  EXPECT_THAT(error("1 1 1 -1 1\n"), HasSubstr("c:12: a memory request of this kernel is below"));
  const auto limited = run_classic(machine_of_2020 + "*kernel\n1 1 5 1 200000000\n", "c", "rr",
                                   TbModel::simtbs_2020, false);
  EXPECT_EQ(limited.exit_status, 0) << limited.err;
  EXPECT_THAT(limited.out, HasSubstr("simulation end: 90\n"));
}

TEST(PaperConfigOf2020, is_the_machine_of_the_reference_files_and_scales) {
  const TbConfig config = paper_config_of_2020({}, TbMix::uniform, 80, 10000).value();
  EXPECT_THAT(
      print_tb_config(config),
      HasSubstr("*sm\n16 8\n*mem\n15000\n*overhead_mem\n500 1.200000\n1000 2.400000\n2000 3.6"));
  EXPECT_THAT(print_tb_config(config),
              HasSubstr("10000 13.200000\n15000 14.000000\n*overhead_sm\n2 0.1"));
  EXPECT_EQ(config.workload.memory[0].high, 100U);
  for (const std::uint32_t sms : {1U, 3U, 16U, 132U}) {
    for (const std::uint32_t units : {2U, 3U, 5U, 8U, 64U}) {
      auto small = paper_config_of_2020({sms, units}, TbMix::extreme, 60, 200);
      ASSERT_TRUE(small);
      const auto load = generate_workload(*small, TbGeneration::published_2020, 3);
      ASSERT_TRUE(load) << load.error().message;
      const std::string text = print_tb_config(*load);
      const auto read = parse_tb_config(text, "again");
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(print_tb_config(*read), text);
      EXPECT_TRUE(simulate(*read, {.model = TbModel::simtbs_2020})) << sms << ", " << units;
    }
  }
  EXPECT_FALSE(paper_config_of_2020({16, 1}, TbMix::uniform, 80, 10));
  EXPECT_FALSE(paper_config_of_2020({16, 8}, TbMix::multi, 80, 10));
}

}  // namespace
}  // namespace demarc::sim
