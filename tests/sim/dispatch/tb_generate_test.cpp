// Tests that workloads and studies of a seed are the same on every machine.
#include "demarc/sim/dispatch/tb_generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "demarc/sim/dispatch/policies.hpp"
#include "demarc/sim/dispatch/tb_study.hpp"
#include "demarc/sim/dispatch/timeline.hpp"

namespace demarc::sim {
namespace {

TEST(Generate, rules_and_mixes_are_known_by_name_and_others_refused) {
  EXPECT_EQ(parse_tb_generation("2020").value(), TbGeneration::published_2020);
  EXPECT_EQ(parse_tb_generation("2021").value(), TbGeneration::published_2021);
  EXPECT_EQ(parse_tb_generation("corrected").value(), TbGeneration::corrected);
  EXPECT_EQ(parse_tb_generation("2022").error().message,
            "unknown generation '2022': use 2021, 2020 or corrected");
  EXPECT_EQ(parse_tb_mix("uniform").value(), TbMix::uniform);
  EXPECT_EQ(parse_tb_mix("extreme").value(), TbMix::extreme);
  EXPECT_EQ(parse_tb_mix("multi").value(), TbMix::multi);
  EXPECT_EQ(parse_tb_mix("").error().message, "unknown mix '': use uniform, extreme or multi");
}

TEST(Generate, the_same_seed_gives_the_same_workload_and_another_seed_another) {
  const TbConfig base = paper_config({}, TbMix::uniform, 80, 2000);
  const auto text = [&](std::uint64_t seed) {
    return print_tb_config(generate_workload(base, TbGeneration::published_2021, seed).value());
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST(Generate, published_ranges_leave_their_lower_bound_out) {
  const auto config = generate_workload(paper_config({}, TbMix::extreme, 100, 20000),
                                        TbGeneration::published_2021, 1)
                          .value();
  ASSERT_GT(config.kernels.size(), 500U);
  std::uint32_t max_blocks = 0;
  TbTicks longest;
  for (const KernelIndex k : config.kernels.keys()) {
    max_blocks = std::max(max_blocks, config.kernels[k].n_tb);
    longest = std::max(longest, config.kernels[k].duration);
    EXPECT_TRUE(config.kernel_fields(k)[0] == 1 || config.kernel_fields(k)[0] == 8);
    EXPECT_GE(config.kernel_fields(k)[1], 21U);
    EXPECT_LE(config.kernel_fields(k)[1], 30U);
  }
  EXPECT_LE(max_blocks, 115U);
  EXPECT_EQ(longest, 14_ticks);
}

TEST(Generate, what_is_printed_is_read_back_the_same) {
  const auto config =
      generate_workload(paper_config({}, TbMix::multi, 60, 1000), TbGeneration::corrected, 5)
          .value();
  const auto again = parse_tb_config(print_tb_config(config), "again");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->fields, config.fields);
  EXPECT_EQ(print_tb_config(*again), print_tb_config(config));
}

TEST(Generate, ranges_with_nothing_to_draw_are_errors) {
  TbConfig base = paper_config({}, TbMix::uniform, 80, 100);
  base.workload.duration = {5, 6};
  EXPECT_FALSE(generate_workload(base, TbGeneration::published_2021, 1));
  EXPECT_TRUE(generate_workload(base, TbGeneration::corrected, 1));
}

TEST(Study, the_result_does_not_depend_on_the_number_of_threads) {
  TbStudyOptions options;
  options.seeds = 2;
  options.ticks = 300;
  options.threads = 1;
  options.sizes = {16};
  options.levels = {80};
  const auto one = compare_policies(options).value();
  options.threads = 3;
  const auto three = compare_policies(options).value();
  EXPECT_EQ(study_json(one), study_json(three));
}

TEST(Study, an_interval_is_students_t_of_as_many_degrees_of_freedom_as_there_are_further_seeds) {
  const Estimate e = estimate({1, 2, 3});
  EXPECT_DOUBLE_EQ(e.mean, 2);
  EXPECT_NEAR(e.low, 2 - 4.3026527297 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(e.high, 2 + 4.3026527297 / std::sqrt(3.0), 1e-9);
  std::vector<double> many;
  for (int i = 0; i < 40; ++i) many.push_back(i % 2);
  const double error = std::sqrt(10.0 / 39 / 40);
  EXPECT_NEAR(estimate(many).high, 0.5 + 2.0226909200 * error, 1e-9);
}

TEST(Policies, every_policy_places_every_block_of_a_light_load) {
  const auto config =
      generate_workload(paper_config({}, TbMix::multi, 20, 2000), TbGeneration::corrected, 3)
          .value();
  for (const PolicyInfo& info : dispatch_policies()) {
    TbConfig unlimited = config;
    unlimited.max_simtime = 0_ticks;
    TbOptions options;
    options.model = TbModel::corrected;
    options.policy = std::string(info.name);
    const auto run = simulate(unlimited, options);
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->finished_blocks, run->placed_blocks) << info.name;
    for (const KernelOutcome& kernel : run->kernels) EXPECT_NE(kernel.end, KernelOutcome::never);
  }
}

TEST(Policies, an_unknown_name_is_answered_with_the_near_ones_and_the_list) {
  EXPECT_EQ(find_policy("rr-skp").error().message,
            "unknown policy 'rr-skp'; did you mean rr-skip? demarc list policies shows all");
  EXPECT_EQ(find_policy("xyzzyxyz").error().message,
            "unknown policy 'xyzzyxyz'; demarc list policies shows all");
}

TEST(Timeline, spans_hold_every_finished_block) {
  const auto config =
      generate_workload(paper_config({}, TbMix::uniform, 40, 500), TbGeneration::published_2021, 1)
          .value();
  TbOptions options;
  options.policy = "bfa";
  const auto timeline = tb_timeline(config, options).value();
  std::uint64_t blocks = 0;
  for (const auto& span : timeline.spans) blocks += span.blocks;
  EXPECT_EQ(blocks, simulate(config, options)->finished_blocks);
}

}  // namespace
}  // namespace demarc::sim
