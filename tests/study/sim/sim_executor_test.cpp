// Tests that colours hold a memory-bound victim on a simulated GPU, on any number of threads.
#include "demarc/study/sim_executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "demarc/base/json.hpp"
#include "demarc/study/study.hpp"
#include "sim/sim_workload.hpp"
#include "workload_spec.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t simulated_l2_bytes = 2U << 20U;

using ::testing::HasSubstr;

Plan small_plan(std::string_view modes, std::string_view victims) {
  Plan plan;
  plan.modes = parse_modes(modes).value();
  plan.victims = parse_workloads(victims, "victims").value();
  plan.aggressors = parse_workloads("va", "aggressors").value();
  plan.rule.warm_up = 1;
  plan.rule.least = plan.rule.most = 2;
  plan.rounds = 1;
  return plan;
}

StudyResult run(const Plan& plan, unsigned threads) {
  SimExecutorOptions options;
  options.threads = threads;
  const auto executor = make_sim_executor(options).value();
  auto result = run_study(plan, *executor, {});
  EXPECT_TRUE(result) << result.error().message;
  return std::move(*result);
}

TEST(SimExecutor, colours_hold_a_memory_bound_victim_that_divided_sms_do_not) {
  const StudyResult result = run(small_plan("mask,mask+color", "va"), 2);
  ASSERT_EQ(result.modes.size(), 2U);
  EXPECT_GT(result.modes[0].mean.maximum, 50);
  EXPECT_LT(result.modes[1].mean.maximum, 15);
  EXPECT_TRUE(result.errors.empty());
  EXPECT_FALSE(result.device.measured);
}

// The first batch waits until its cell is simulated, for more than the millisecond that a visit may
// take. The launches themselves are shorter.
TEST(SimExecutor, samples_are_the_same_however_long_their_simulation_takes) {
  Plan plan = small_plan("mask", "va");
  plan.rule = {0, 1, 4, 0, 0.001};
  const StudyResult result = run(plan, 1);
  for (const Cell& cell : result.cells) EXPECT_EQ(cell.samples_ns.size(), 4U);
}

TEST(SimExecutor, progress_of_a_study_grows_from_the_preparation_to_its_end) {
  const auto executor = make_sim_executor({}).value();
  std::vector<double> seen;
  std::set<std::string> said;
  RunOptions options;
  options.progress = [&](double share, std::string_view what) {
    seen.push_back(share);
    said.emplace(what);
  };
  const auto result = run_study(small_plan("mask", "va"), *executor, options);
  ASSERT_TRUE(result) << result.error().message;
  for (const char* one :
       {"emulating va", "va alone on the whole GPU", "mask: va next to -", "mask: va next to va"}) {
    EXPECT_TRUE(said.contains(one)) << one;
  }
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_DOUBLE_EQ(seen.back(), 1);
}

TEST(SimExecutor, side_by_side_gives_the_same_samples_as_one_after_the_other) {
  const Plan plan = small_plan("mps,mask", "mm");
  const StudyResult serial = run(plan, 1);
  const StudyResult parallel = run(plan, 2);
  ASSERT_EQ(serial.cells.size(), parallel.cells.size());
  for (std::size_t i = 0; i < serial.cells.size(); ++i) {
    EXPECT_EQ(serial.cells[i].samples_ns, parallel.cells[i].samples_ns) << i;
    EXPECT_EQ(serial.cells[i].aggressor_rate, parallel.cells[i].aggressor_rate) << i;
  }
}

// `va` runs for a few us, its neighbour for hundreds.
TEST(SimExecutor, a_short_victim_sees_all_of_its_neighbours_run) {
  Plan plan = small_plan("mask", "va@n=4096");
  plan.aggressors = parse_workloads("chase@chains=64+steps=512", "aggressors").value();
  plan.rule.warm_up = 0;
  plan.rule.least = plan.rule.most = 1;
  const StudyResult result = run(plan, 2);
  ASSERT_EQ(result.cells.size(), 2U);
  const Cell& beside = result.cells[1];
  EXPECT_EQ(beside.samples_ns.size(), 1U);
  EXPECT_GT(beside.aggressor_rate, 0) << "no run of the neighbour has ended";
}

// In half of a V100's L2 the runs of `cfd` differ, and next to `fwt` more of them are timed.
TEST(SimExecutor, a_victim_whose_runs_differ_takes_as_long_next_to_a_neighbour_of_another_colour) {
  Plan plan = small_plan("mask+color", "cfd");
  plan.aggressors = parse_workloads("mm,fwt", "aggressors").value();
  plan.rule.least = plan.rule.most = 3;
  SimExecutorOptions options;
  options.device = "v100";
  const auto executor = make_sim_executor(options).value();
  const auto result = run_study(plan, *executor, {});
  ASSERT_TRUE(result) << result.error().message;
  const std::vector<double>& idle = result->cells.at(0).samples_ns;
  const auto [least, most] = std::minmax_element(idle.begin(), idle.end());
  EXPECT_LT(*most, 1.05 * *least) << "means of ten runs or more";
  for (const Cell& cell : result->cells) EXPECT_EQ(cell.samples_ns, idle);
}

// `cfd` next to `fwt` has runs that differ. One visit of seven samples shows all of them.
class SimSamples : public ::testing::Test {
 protected:
  static StudyResult study(const StoppingRule& rule, std::uint32_t rounds,
                           const RunOptions& options = {}) {
    Plan plan = small_plan("mask", "cfd");
    plan.aggressors = parse_workloads("fwt", "aggressors").value();
    plan.rule = rule;
    plan.rounds = rounds;
    SimExecutorOptions device;
    device.device = "v100";
    const auto executor = make_sim_executor(device).value();
    auto result = run_study(plan, *executor, options);
    EXPECT_TRUE(result) << result.error().message;
    return std::move(*result);
  }
};

TEST_F(SimSamples, later_batches_and_rounds_go_on_where_the_one_before_ended) {
  constexpr double never = -1;  // no precision ends the visit
  const StudyResult at_once = study({1, 7, 7, never, 1000}, 1);
  const StudyResult batches = study({1, 3, 7, never, 1000}, 1);
  const StudyResult rounds = study({1, 3, 3, never, 1000}, 2);
  std::vector<double> all = at_once.cells.at(1).samples_ns;
  ASSERT_EQ(all.size(), 7U);
  EXPECT_GE(std::set<double>(all.begin(), all.end()).size(), 6U);
  EXPECT_EQ(batches.cells.at(1).samples_ns, all);
  all.erase(all.begin() + 3);  // the second round warms up
  EXPECT_EQ(rounds.cells.at(1).samples_ns, all);
  EXPECT_EQ(rounds.cells.at(1).discarded, 2U);
}

TEST_F(SimSamples, a_resumed_study_gets_those_that_the_earlier_one_did_not_take) {
  const StudyResult whole = study({1, 3, 3, 0, 1000}, 2);
  std::size_t asked = 0;
  RunOptions options;
  options.stop = [&] { return asked++ == 3; };  // the baseline, and each of two cells once
  const StudyResult half = study({1, 3, 3, 0, 1000}, 2, options);
  ASSERT_EQ(half.cells.at(1).visits, 1U);
  RunOptions rest;
  rest.earlier = &half;
  const StudyResult resumed = study({1, 3, 3, 0, 1000}, 2, rest);
  for (const std::size_t cell : {0U, 1U}) {
    EXPECT_EQ(resumed.cells.at(cell).samples_ns, whole.cells.at(cell).samples_ns);
  }
}

TEST_F(SimSamples, of_a_lane_that_was_not_prepared_are_simulated_as_they_are_asked_for) {
  const auto asked_for = [](std::initializer_list<std::uint32_t> batches) {
    SimExecutorOptions device;
    device.device = "v100";
    const auto executor = make_sim_executor(device).value();
    const auto stage = executor->divide(Mode{partition::Mode::mask, false}, 2).value();
    EXPECT_TRUE(stage->lane(0).load({"cfd", "cfd"}));
    std::vector<double> all;
    for (const std::uint32_t count : batches) {
      const auto samples = stage->lane(0).sample(count, 1).value();
      EXPECT_EQ(samples.size(), count);
      all.insert(all.end(), samples.begin(), samples.end());
    }
    return all;
  };
  const std::vector<double> all = asked_for({5});
  EXPECT_GT(all.at(0), all.at(1)) << "the first run finds nothing in the caches";
  EXPECT_EQ(asked_for({1, 1, 3}), all);
}

TEST(SimExecutor, what_it_cannot_model_is_said) {
  const auto executor = make_sim_executor({}).value();
  const auto stage = executor->divide(Mode{partition::Mode::timeslice, false}, 2);
  ASSERT_FALSE(stage);
  EXPECT_EQ(stage.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(stage.error().message, HasSubstr("timeslice"));
  const auto eight = executor->divide(Mode{partition::Mode::mask, true}, 4);
  EXPECT_TRUE(eight) << eight.error().message;
  SimExecutorOptions unknown;
  unknown.device = "h100-80gb-hbm3";
  EXPECT_FALSE(make_sim_executor(unknown));
}

TEST(SimExecutor, the_scale_of_a_card_is_known_of_the_kernels_of_the_study_only) {
  const auto loaded = load_sim_workload("hotspot@card", 90, simulated_l2_bytes);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(loaded.error().message,
              HasSubstr("'hotspot@card': only the kernels of the study have the scale 'card'"));
}

TEST(SimExecutor, parameters_stand_behind_the_sign_and_change_those_of_the_default_size) {
  const auto code = sim_workload_code("va@n=1000", 90, simulated_l2_bytes);
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(code->launch.parameters.at("n"), 1000);
  const auto chase = sim_workload_code("chase@elements=64+steps=5", 90, simulated_l2_bytes);
  ASSERT_TRUE(chase) << chase.error().message;
  EXPECT_EQ(chase->launch.parameters.at("elements"), 64);
  EXPECT_EQ(chase->launch.parameters.at("steps"), 5);
  EXPECT_EQ(chase->launch.parameters.at("chains"), 256) << "that of the launch file";
  for (const char* const wrong : {"va@n=", "va@=1", "va@n=1+", "va@n=1+m", "va@n=x"}) {
    const auto refused = sim_workload_code(wrong, 90, simulated_l2_bytes);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message, HasSubstr("is not PARAMETER=NUMBER")) << wrong;
  }
  EXPECT_THAT(sim_workload_code("va@words=1", 90, simulated_l2_bytes).error().message,
              HasSubstr("words"));
}

TEST(SimExecutor, a_scale_is_named_behind_its_sign) {
  EXPECT_EQ(load_sim_workload("va@", 90, simulated_l2_bytes).error(),
            (Error{ErrorKind::invalid_input,
                   "'va@': name one of its scales after the '@', or leave the '@' out"}));
  EXPECT_THAT(load_sim_workload("launch:k.json@", 90, simulated_l2_bytes).error().message,
              HasSubstr("'launch:k.json@': name one of its scales"));
  const BundledSpec named = std::get<BundledSpec>(parse_workload_spec("va@large").value());
  EXPECT_EQ(named.name, "vecadd");
  EXPECT_EQ(named.scale, "large");
  EXPECT_EQ(std::get<BundledSpec>(parse_workload_spec("nn").value()).scale, std::nullopt);
}

// Streaming workloads are larger than the L2, so that a run finds nothing of the one before; others
// keep their size.
TEST(SimSizes, of_streaming_workloads_follow_the_l2) {
  const auto bytes_of = [](const char* spec, std::uint64_t l2) {
    const auto code = sim_workload_code(spec, 90, l2).value();
    std::uint64_t bytes = 0;
    for (const auto& buffer : code.launch.buffers) bytes += buffer.bytes;
    return bytes;
  };
  for (const char* spec : {"va", "nn", "dram_read", "dram_write"}) {
    const std::uint64_t usual = bytes_of(spec, 0);
    EXPECT_EQ(bytes_of(spec, 2U << 20U), usual) << spec;
    const std::uint64_t l2 = 60U << 20U;
    EXPECT_GE(bytes_of(spec, l2), l2 * 3 / 2) << spec;
    EXPECT_LT(bytes_of(spec, l2), l2 * 3 / 2 + (2U << 20U)) << spec;
  }
  EXPECT_EQ(bytes_of("mm", 60U << 20U), bytes_of("mm", 0));
  EXPECT_EQ(bytes_of("va@n=1024", 60U << 20U), 3U * 4096);
}

TEST(SimSizes, that_all_fit_into_the_l2_are_said_to) {
  const auto executor = make_sim_executor({}).value();
  Plan plan = small_plan("mask", "va@n=4096");
  plan.aggressors = parse_workloads("va@n=8192", "aggressors").value();
  const StudyResult fits = forecast_study(plan, *executor).value();
  EXPECT_EQ(fits.doubt,
            "All data of each workload fit into the L2 (2.0 MiB), so these figures say nothing "
            "about workloads that load the DRAM, which slow each other more");
  EXPECT_THAT(fits.recommendation, testing::EndsWith(fits.doubt + "."));
  EXPECT_EQ(run(plan, 1).doubt, fits.doubt);
  EXPECT_EQ(Json::parse(study_json(fits, ""))["doubt"], fits.doubt);
  plan.aggressors = parse_workloads("va", "aggressors").value();
  EXPECT_EQ(forecast_study(plan, *executor).value().doubt, "");
}

TEST(SimExecutor, throttle_keeps_the_neighbour_to_an_eighth_of_the_tpcs) {
  const StudyResult result = run(small_plan("mask,throttle", "va"), 2);
  EXPECT_THAT(result.modes[1].account, HasSubstr("part 0: 18 SMs"));
  EXPECT_THAT(result.modes[1].account, HasSubstr("part 1: 2 SMs"));
  EXPECT_LT(result.modes[1].mean.maximum, result.modes[0].mean.maximum);
}

}  // namespace
}  // namespace demarc::study
