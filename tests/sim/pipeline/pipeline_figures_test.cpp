// Who runs where and when in the experiments of "Hardware Compute Partitioning on NVIDIA GPUs"
// (RTAS 2023), from the scenario files of examples/dispatch.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "demarc/base/files.hpp"
#include "demarc/sim/pipeline/scenario.hpp"
#include "paths.hpp"
#include "sms.hpp"

namespace demarc::sim {
namespace {

using test::sm_list;

struct Played {
  PipelineScenario scenario;
  PipelineRun run;

  [[nodiscard]] KernelIndex index(const std::string& name) const {
    for (const KernelIndex k : scenario.kernels.keys()) {
      if (scenario.kernels[k].name == name) return k;
    }
    ADD_FAILURE() << "no kernel " << name;
    return {};
  }
  [[nodiscard]] double first_us(const std::string& name) const {
    return microseconds(run.kernels[index(name)].started);
  }
  [[nodiscard]] double end_us(const std::string& name) const {
    return microseconds(run.kernels[index(name)].ended);
  }
  [[nodiscard]] std::vector<SmIndex> sms(const std::string& name) const {
    return sms_of_kernel(run, index(name));
  }
};

Played play(const std::string& name) {
  const auto file = test::source_dir() / "examples" / "dispatch" / (name + ".json");
  auto scenario = parse_scenario(read_file(file).value(), file.string());
  EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().message);
  auto run = run_pipeline(scenario->spec, scenario->kernels, true);
  EXPECT_TRUE(run) << (run ? "" : run.error().message);
  return {std::move(*scenario), std::move(*run)};
}

TEST(Figure3, without_masks_k2_waits_for_the_waves_of_k1) {
  const Played p = play("fig03_shared");
  EXPECT_EQ(p.sms("K1"), sm_list({0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(p.end_us("K1"), 200);
  EXPECT_EQ(p.first_us("K2"), 200);
  EXPECT_EQ(p.end_us("K2"), 300);
}

TEST(Figure3, with_disjoint_masks_k2_starts_when_it_arrives) {
  const Played p = play("fig03_masked");
  EXPECT_EQ(p.sms("K1"), sm_list({0, 1, 2, 3}));
  EXPECT_EQ(p.sms("K2"), sm_list({4, 5, 6, 7, 8}));
  EXPECT_EQ(p.first_us("K2"), 10);
  EXPECT_EQ(p.end_us("K2"), 110);
  EXPECT_EQ(p.end_us("K1"), 500);
}

TEST(Figure4, the_same_mask_switches_single_sms_on_one_card_and_pairs_on_another) {
  EXPECT_EQ(play("fig04_gtx1060").sms("K"), sm_list({0, 2, 4, 6, 8}));
  const auto sms = play("fig04_p100").sms("K");
  std::vector<SmIndex> expected;
  for (const SmIndex sm : indices<SmIndex>(56)) {
    if (sm.raw() / 2 % 2 == 0) expected.push_back(sm);
  }
  EXPECT_EQ(sms, expected);
}

TEST(Figure10, every_kernel_stays_inside_its_own_partition) {
  const Played p = play("fig10_many_partitions");
  ASSERT_EQ(p.scenario.kernels.size(), 38U);
  std::set<std::string> partitions;
  for (const PipelineKernel& kernel : p.scenario.kernels)
    partitions.insert(kernel.tpcs.to_string());
  EXPECT_EQ(partitions.size(), 17U);
  ASSERT_FALSE(p.run.runs.empty());
  // This card has one SM per TPC.
  for (const BlockRun& run : p.run.runs) {
    EXPECT_TRUE(p.scenario.kernels[run.kernel].tpcs.test(run.sm.raw()))
        << p.scenario.kernels[run.kernel].name << " on SM " << run.sm;
  }
}

TEST(Figure10, kernels_of_a_stream_wait_for_each_other_even_with_disjoint_partitions) {
  const Played p = play("fig10_many_partitions");
  std::map<std::uint32_t, Nanoseconds> last_end;
  bool disjoint_neighbours = false;
  std::map<std::uint32_t, TpcMask> last_mask;
  for (const KernelIndex k : p.scenario.kernels.keys()) {
    const PipelineKernel& kernel = p.scenario.kernels[k];
    EXPECT_GE(p.run.kernels[k].started, last_end[kernel.stream]) << kernel.name;
    last_end[kernel.stream] = p.run.kernels[k].ended;
    if (last_mask.contains(kernel.stream)) {
      disjoint_neighbours = disjoint_neighbours || (last_mask[kernel.stream] & kernel.tpcs).none();
    }
    last_mask[kernel.stream] = kernel.tpcs;
  }
  EXPECT_TRUE(disjoint_neighbours);
}

TEST(Figure11, finish_times_on_overlapping_partitions_depend_on_who_arrives_first) {
  const Played first = play("fig11_k1_first");
  EXPECT_EQ(first.end_us("K1"), 200);
  EXPECT_EQ(first.end_us("K2"), 301);
  const Played second = play("fig11_k2_first");
  EXPECT_EQ(second.end_us("K2"), 200);
  EXPECT_EQ(second.end_us("K1"), 301);
}

TEST(Figure11, the_late_kernel_gets_only_the_tpcs_that_are_not_shared) {
  const Played p = play("fig11_k1_first");
  for (const BlockRun& run : p.run.runs) {
    if (run.kernel != p.index("K2") || run.start >= 200000_ns) continue;
    EXPECT_GE(run.sm, SmIndex(4));
  }
}

TEST(Figure12, urgent_kernels_in_every_slot_stop_an_unrelated_partition) {
  const Played p = play("fig12_slots_full");
  const KernelIndex k33 = p.index("K33");
  EXPECT_EQ(p.run.kernels[k33].evictions, 1U);
  std::set<double> starts;
  for (const BlockRun& run : p.run.runs) {
    if (run.kernel == k33) starts.insert(microseconds(run.start));
  }
  // The first wave ends at 100; nothing is launched until the first urgent kernel ends at 310.
  EXPECT_EQ(starts, (std::set<double>{0, 310, 410, 510}));
  EXPECT_EQ(p.end_us("K33"), 610);
  EXPECT_EQ(p.sms("K33"), sm_list({4, 5, 6, 7, 8}));
}

TEST(Figure12, one_slot_more_and_the_partition_is_undisturbed) {
  const Played p = play("fig12_one_more_slot");
  EXPECT_EQ(p.run.kernels[p.index("K33")].evictions, 0U);
  EXPECT_EQ(p.end_us("K33"), 400);
  EXPECT_EQ(p.run.max_slots_used, 33U);
}

TEST(Figure13, a_further_tpc_never_slows_a_partition_and_its_gpc_does_not_matter) {
  const Played packed = play("fig13_packed");
  const Played distributed = play("fig13_distributed");
  Nanoseconds before(~std::uint64_t{0});
  for (const KernelIndex k : indices<KernelIndex>(40)) {
    const auto took = [k](const Played& p) {
      return p.run.kernels[k].ended - p.run.kernels[k].started;
    };
    const std::uint64_t tpcs = k.raw() + 1;
    EXPECT_EQ(packed.scenario.kernels[k].tpcs.count(), tpcs);
    EXPECT_EQ(took(packed), took(distributed)) << tpcs << " TPCs";
    EXPECT_LE(took(packed), before) << tpcs << " TPCs";
    before = took(packed);
    // 1200 blocks, four at a time on each TPC, 10 us each.
    EXPECT_EQ(took(packed), (1200 + 4 * tpcs - 1) / (4 * tpcs) * 10000_ns);
  }
  EXPECT_NE(packed.scenario.kernels[KernelIndex(5)].tpcs,
            distributed.scenario.kernels[KernelIndex(5)].tpcs);
}

}  // namespace
}  // namespace demarc::sim
