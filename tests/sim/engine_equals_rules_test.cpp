// Random configurations: the engine equals the rules followed tick by tick, policy by policy.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/sim/tb_simulation.hpp"
#include "plain_reference.hpp"

namespace demarc::sim {
namespace {

class UseRecorder final : public TbObserver {
 public:
  void ended(std::uint32_t tick, std::uint32_t ticks, const Machine& machine) override {
    EXPECT_EQ(tick, use.size());
    std::vector<std::uint64_t> now;
    for (std::size_t r = 0; r < machine.resources(); ++r) now.push_back(machine.total(r));
    use.insert(use.end(), ticks, now);
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

TbConfig random_config(std::size_t resources, std::size_t memories) {
  TbConfig config;
  config.source = "random";
  config.max_simtime = *rc::gen::inRange(1U, 400U);
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
  const int kernels = *rc::gen::inRange(0, 40);
  std::uint32_t start = 1;
  for (int k = 0; k < kernels; ++k) {
    start += *rc::gen::inRange(0U, 12U);
    std::vector<std::uint32_t> fields;
    for (std::size_t r = 0; r < resources; ++r) {
      // Now and then one that fits no SM.
      fields.push_back(*rc::gen::inRange(1U, config.sm.max[r] + 2U - *rc::gen::inRange(0U, 2U)));
    }
    for (std::size_t m = 0; m < memories; ++m) fields.push_back(*rc::gen::inRange(0U, 30U));
    config.add_kernel({*rc::gen::inRange(0U, 13U), start, *rc::gen::inRange(1U, 120U),
                       *rc::gen::inRange(1U, 40U), static_cast<std::uint32_t>(k + 1)},
                      fields);
  }
  return config;
}

void expect_equal_to_rules(std::size_t resources, std::size_t memories, TbModel model) {
  const TbConfig config = random_config(resources, memories);
  // The rules' own table of which field a memory request is read from.
  std::vector<std::size_t> fields;
  for (std::size_t m = 0; m < memories; ++m) fields.push_back(resources + m);
  if (memories == 1 && resources >= 2 && resources <= 11) fields[0] = 1;
  if (memories == 2 && resources >= 3 && resources <= 10) fields = {2, 3};
  if (memories == 2 && resources == 11) fields[0] = 1;
  for (const char* policy : {"rr", "rrf", "bfa", "dfa", "smk", "fua", "rr-skip"}) {
    const auto want = plain::Reference(config, policy, model == TbModel::simtbs_2020, fields).run();
    UseRecorder recorder;
    TbOptions options;
    options.model = model;
    options.policy = policy;
    options.observer = &recorder;
    const auto got = simulate(config, options);
    RC_ASSERT(static_cast<bool>(got));
    RC_LOG(policy);
    RC_ASSERT(got->out_of_memory == want.out_of_memory);
    RC_ASSERT(recorder.use == want.use);
    RC_ASSERT(got->ticks == want.ticks);
    RC_ASSERT(got->finished_blocks == want.finished);
    RC_ASSERT(got->memory_use == want.memory_use);
    for (std::size_t k = 0; k < config.kernels.size(); ++k) {
      RC_ASSERT(got->kernels[k].end == want.end[k]);
      if (!want.out_of_memory) RC_ASSERT(got->kernels[k].first_run == want.first[k]);
    }
  }
}

RC_GTEST_PROP(EngineEqualsRules, with_one_resource_and_one_memory, ()) {
  expect_equal_to_rules(1, 1, TbModel::simtbs);
}

RC_GTEST_PROP(EngineEqualsRules, as_of_2020, ()) {
  expect_equal_to_rules(1, 1, TbModel::simtbs_2020);
}

RC_GTEST_PROP(EngineEqualsRules, with_several_resources_and_memories, ()) {
  const auto memories = *rc::gen::inRange<std::size_t>(1, 3);
  const auto resources = *rc::gen::inRange<std::size_t>(2, 13);
  expect_equal_to_rules(resources, memories, TbModel::simtbs);
}

}  // namespace
}  // namespace demarc::sim
