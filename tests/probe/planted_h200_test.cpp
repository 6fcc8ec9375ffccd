// The whole probe of slices that are remainders, some of which share a path to memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "demarc/base/json.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/probe/probe.hpp"
#include "kept_report.hpp"
#include "planted_memory.hpp"

namespace demarc::probe {
namespace {

using testing::Contains;
using testing::HasSubstr;

// So few pages, and so small an L2, that it takes no time.
MemoryReport probed(std::uint32_t paths, const Progress& progress = {}) {
  PlantedTruth truth = planted_truth("h200").value();
  truth.facts.pages = 200;
  truth.facts.l2_bytes = 4U << 20U;
  truth.paths = paths;
  PlantedMemory memory(truth, 5);
  ProbeOptions options;
  options.conflicts.dram_bytes = 8U << 20U;
  options.slices.sms = 16;
  return probe_memory(memory, options, progress).value();
}

TEST(PlantedH200, its_slices_are_remainders_modulo_47_and_its_paths_runs_of_them) {
  ProgressSeen progress;
  const MemoryReport report = probed(6, progress.note());
  EXPECT_TRUE(report.decided) << report_to_text(report);
  EXPECT_EQ(report.map.slices, 94U);
  EXPECT_EQ(report.map.module.rows, planted_truth("h200")->module.rows);
  EXPECT_EQ(report.map.stack->modulus, 47U);
  EXPECT_EQ(report.slices->remainder_model->hash.digits, color::h200_remainders().digits);
  EXPECT_TRUE(report.conflicts->isolating.empty());

  const RemainderConflicts& found = report.remainder_conflicts.value();
  EXPECT_EQ(found.pages, 200U);
  EXPECT_EQ(found.uncertain, 0U);
  EXPECT_EQ(found.groups, 6U);
  EXPECT_GT(found.least_same, 2);
  EXPECT_LT(found.max_other, 1.1);
  ASSERT_EQ(found.group_of.size(), 47U);
  std::size_t changes = 0;
  for (std::size_t r = 0; r < 47; ++r) {
    if (found.group_of[r] != found.group_of[(r + 1) % 47]) ++changes;
  }
  EXPECT_EQ(changes, 6U) << "each group is one run, around the modulus";

  auto runs = report.map.remainder_runs;
  std::sort(runs.begin(), runs.end());
  EXPECT_THAT(runs, testing::ElementsAre(7, 8, 8, 8, 8, 8));
  EXPECT_THAT(report.verdict, Contains(HasSubstr("94 slices: inside a module the remainder modulo "
                                                 "47 of a number whose digits are")));
  EXPECT_THAT(report.verdict, Contains(HasSubstr("no linear mask keeps DRAM reads")));
  EXPECT_THAT(report.verdict, Contains(HasSubstr(": 6 groups; reads next to writes to another")));
  EXPECT_THAT(report.verdict, Contains("colours by masks: none"));
  EXPECT_THAT(report.verdict,
              Contains("colours by remainders: runs of them, each of whole groups"));
  EXPECT_THAT(report_to_text(report),
              HasSubstr("\n- windows: no: slices change every 256 bytes: a page of 4 KiB has bytes "
                        "of several colours, so no page table divides them; give the program PTX, "
                        "or a build of it that has PTX\n"));
  // The description that comes of it names colours, and no masks.
  gpu::Device device;
  device.address_map = report.map;
  const auto scheme = color::color_scheme(device, 4);
  ASSERT_TRUE(scheme) << scheme.error().message;
  EXPECT_EQ(scheme->paths, 6U);
  EXPECT_EQ(scheme->remainders->modulus, 47U);
  EXPECT_EQ(Json::parse(report_to_json(report))["remainder_conflicts"]["groups"], 6);
  expect_kept_report("planted_h200", report, progress);
}

// One module, whose slices are remainders: no mask tells halves apart.
TEST(PlantedH200, remainders_without_halves_are_a_model_too) {
  PlantedTruth truth = planted_truth("h200").value();
  truth.module.rows.clear();
  truth.cache_module.rows.clear();
  truth.facts.pages = 4;
  PlantedMemory memory(truth, 5);
  SliceOptions options;
  options.sms = 16;
  const SliceFinding found = find_slices(memory, options, {}).value();
  EXPECT_TRUE(found.model.masks.empty());
  ASSERT_TRUE(found.remainders);
  EXPECT_EQ(found.remainders->slices, 47U);
  ASSERT_TRUE(found.remainder_model);
  EXPECT_EQ(found.remainder_model->hash.half, 0U);
  EXPECT_EQ(found.remainder_model->hash.modulus, 47U);
  EXPECT_FALSE(found.decided) << "colours need masks";
}

TEST(PlantedH200, remainders_that_all_share_one_path_make_no_colours) {
  const MemoryReport report = probed(1);
  ASSERT_TRUE(report.remainder_conflicts);
  EXPECT_EQ(report.remainder_conflicts->groups, 1U);
  EXPECT_TRUE(report.map.remainder_runs.empty());
  EXPECT_THAT(report.verdict, Contains("colours by remainders: none, all share one path"));
  EXPECT_TRUE(report.windows.known);
  EXPECT_THAT(report.windows.reason, HasSubstr("no colours were found that isolate"));
}

}  // namespace
}  // namespace demarc::probe
