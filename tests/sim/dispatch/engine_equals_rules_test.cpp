// Random configurations: the engine equals the rules followed tick by tick, policy by policy.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/sim/dispatch/policies.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"
#include "plain_report.hpp"

namespace demarc::sim {
namespace {

class UseRecorder final : public TbObserver {
 public:
  void ended(TbTicks tick, TbTicks ticks, const Occupancy& machine) override {
    EXPECT_EQ(tick, TbTicks(use.size()));
    std::vector<std::uint64_t> now;
    for (std::size_t r = 0; r < machine.resources(); ++r) now.push_back(machine.total(r));
    use.insert(use.end(), ticks.raw(), now);
  }
  std::vector<std::vector<std::uint64_t>> use;
};

OverheadTable random_table(std::size_t columns, bool wide) {
  OverheadTable table;
  float ratio = 0;
  std::vector<float> cost(columns, 0.0F);
  const int rows = *rc::gen::inRange(1, 5);
  for (int i = 0; i < rows; ++i) {
    ratio += static_cast<float>(*rc::gen::inRange(1, wide ? 60 : 25)) / 100.0F;
    for (float& c : cost) c += static_cast<float>(*rc::gen::inRange(1, 80)) / 100.0F;
    table.rows.push_back({ratio, cost, 0});
  }
  return table;
}

// Every block shares something with the next one and with the one eight on.
BlockSharing neighbour_sharing() {
  std::vector<SharedPlaces> sets;
  for (std::uint32_t i = 0; i < 120; ++i) {
    sets.push_back({2 + i % 3, {BlockNumber(i), BlockNumber(i + 1)}});
    sets.push_back({3, {BlockNumber(i), BlockNumber(i + 8)}});
  }
  return BlockSharing(128, sets);
}

TbConfig random_config(std::size_t resources, std::size_t memories) {
  TbConfig config;
  config.source = "random";
  config.max_simtime = TbTicks(*rc::gen::inRange(1U, 250U));
  config.sm.n_sms = *rc::gen::inRange(1U, 40U);
  const auto n = static_cast<std::uint32_t>(resources);
  config.sm.n_sched = *rc::gen::inRange(1U, n + 1);
  config.sm.n_boundary = *rc::gen::inRange(0U, n + 1);
  for (std::size_t r = 0; r < resources; ++r) {
    config.sm.max.push_back(*rc::gen::inRange(1U, 40U));
  }
  for (std::size_t m = 0; m < memories; ++m) {
    config.memory.push_back(*rc::gen::inRange(300U, 20000U));
  }
  config.sm_overhead = random_table(resources, true);
  config.memory_overhead = random_table(memories, false);
  const int kernels = *rc::gen::inRange(0, 25);
  TbTicks start = 1_ticks;
  for (int k = 0; k < kernels; ++k) {
    start += TbTicks(*rc::gen::inRange(0U, 12U));
    std::vector<std::uint32_t> fields;
    for (std::size_t r = 0; r < resources; ++r) {
      // Now and then one that fits no SM.
      fields.push_back(*rc::gen::inRange(1U, config.sm.max[r] + 2U - *rc::gen::inRange(0U, 2U)));
    }
    for (std::size_t m = 0; m < memories; ++m) fields.push_back(*rc::gen::inRange(0U, 30U));
    config.add_kernel({*rc::gen::inRange(0U, 13U), start, *rc::gen::inRange(1U, 120U),
                       TbTicks(*rc::gen::inRange(1U, 40U)), static_cast<std::uint32_t>(k + 1)},
                      fields);
  }
  return config;
}

// A machine that the program of 2020 has: rows at whole units up to the capacity.
TbConfig random_config_of_2020() {
  TbConfig config = random_config(1, 1);
  config.sm.n_sched = config.sm.n_boundary = 1;
  config.sm.max[0] = std::max(config.sm.max[0], 2U);
  config.grammar = TbGrammar::of_2020;
  const auto make_rows = [](OverheadTable& table, std::uint32_t capacity) {
    table.rows.clear();
    float cost = 0;
    for (std::uint32_t units = 1; units < capacity;) {
      units = std::min(units + *rc::gen::inRange(1U, std::max(capacity / 2, 2U)), capacity);
      cost += static_cast<float>(*rc::gen::inRange(1, 80)) / 100.0F;
      table.rows.push_back({static_cast<float>(units) / static_cast<float>(capacity), {cost}, 0});
    }
  };
  make_rows(config.sm_overhead, config.sm.max[0]);
  make_rows(config.memory_overhead, config.memory[0]);
  for (const KernelIndex k : config.kernels.keys()) {
    std::uint32_t& units = config.fields[2 * k.raw()];
    units = std::max(std::min(units, config.sm.max[0] + 1), 1U);
    config.fields[2 * k.raw() + 1] += 1;  // without memory it divides by zero
  }
  return config;
}

void expect_equal_to_rules(const TbConfig& config, TbModel model) {
  for (const PolicyInfo& info : dispatch_policies()) {
    const std::string policy(info.name);
    RC_LOG(policy);
    const auto want = plain::Reference(config, policy, model).run();
    UseRecorder recorder;
    TbOptions options;
    options.model = model;
    options.policy = policy;
    options.observer = &recorder;
    options.sharing[0] = neighbour_sharing();
    const auto got = simulate(config, options);
    RC_ASSERT(static_cast<bool>(got));
    RC_ASSERT(got->out_of_memory == want.out_of_memory);
    RC_ASSERT(recorder.use == want.use);
    RC_ASSERT(got->ticks == want.ticks);
    RC_ASSERT(got->finished_blocks == want.finished);
    RC_ASSERT(got->memory_use == want.memory_use);
    for (const KernelIndex k : config.kernels.keys()) {
      RC_ASSERT(got->kernels[k].end == want.end[k]);
      if (!want.out_of_memory) RC_ASSERT(got->kernels[k].first_run == want.first[k]);
    }
  }
}

// What is printed and read back, so that both sides start from the same text.
void expect_printed_as_by_rules(TbConfig config, TbModel model) {
  const std::string text = print_tb_config(config);
  config = parse_tb_config(text, "random").value();
  for (const std::string policy : {"rr", "rrf", "bfa", "dfa", "smk", "fua", "rr-skip", "hw"}) {
    RC_LOG(policy);
    const auto want = plain::Reference(config, policy, model).run();
    for (const bool verbose : {false, true}) {
      const auto got = run_classic(text, "random", policy, model, verbose);
      if (want.out_of_memory) {
        RC_ASSERT(got.exit_status == 4);
        RC_ASSERT(got.err == plain::printed("ERROR: out of memory: %u\n\n", *want.out_of_memory));
        continue;
      }
      RC_ASSERT(got.err == "");
      RC_ASSERT(got.exit_status == 0);
      RC_ASSERT(got.out == (model == TbModel::simtbs_2020
                                ? plain::report_2020(config, policy, want, verbose)
                                : plain::report(config, policy, model, want, verbose)));
    }
  }
}

TbConfig random_layout() {
  const auto memories = *rc::gen::inRange<std::size_t>(1, 3);
  return random_config(*rc::gen::inRange<std::size_t>(memories, 13), memories);
}

RC_GTEST_PROP(EngineEqualsRules, with_one_resource_and_one_memory, ()) {
  expect_equal_to_rules(random_config(1, 1), TbModel::simtbs);
}

// "-5" in a configuration is 2^32 - 5: adding it takes 5 away.
void let_requests_wrap(TbConfig& config) {
  for (std::uint32_t& field : config.fields) {
    if (*rc::gen::inRange(0, 4) == 0) field = 0U - *rc::gen::inRange(1U, 9U);
  }
}

RC_GTEST_PROP(EngineEqualsRules, with_requests_that_wrap_around, ()) {
  TbConfig config = random_config(1, 1);
  let_requests_wrap(config);
  expect_equal_to_rules(config, TbModel::simtbs);
}

RC_GTEST_PROP(EngineEqualsRules, with_requests_that_wrap_around_in_several_resources, ()) {
  TbConfig config = random_layout();
  let_requests_wrap(config);
  expect_equal_to_rules(config, TbModel::simtbs);
}

RC_GTEST_PROP(EngineEqualsRules, as_of_2020, ()) {
  expect_equal_to_rules(random_config_of_2020(), TbModel::simtbs_2020);
}

RC_GTEST_PROP(EngineEqualsRules, with_several_resources_and_memories, ()) {
  expect_equal_to_rules(random_layout(), TbModel::simtbs);
}

RC_GTEST_PROP(EngineEqualsRules, corrected_with_kernels_in_any_order, ()) {
  TbConfig config = random_layout();
  for (TbKernel& kernel : config.kernels) kernel.start = TbTicks(*rc::gen::inRange(1U, 200U));
  expect_equal_to_rules(config, TbModel::corrected);
}

RC_GTEST_PROP(PrintedReport, is_that_of_the_rules_plain_and_verbose, ()) {
  expect_printed_as_by_rules(random_layout(), TbModel::simtbs);
}

RC_GTEST_PROP(PrintedReport, is_that_of_the_rules_as_of_2020_and_corrected, ()) {
  expect_printed_as_by_rules(random_config_of_2020(), TbModel::simtbs_2020);
  expect_printed_as_by_rules(random_layout(), TbModel::corrected);
}

}  // namespace
}  // namespace demarc::sim
