// Planted functions found from tens of thousands of timings.
#include <gtest/gtest.h>

#include "demarc/base/gf2.hpp"
#include "demarc/color/coloring.hpp"
#include "demarc/probe/probe.hpp"
#include "few_sms.hpp"
#include "planted_memory.hpp"

namespace demarc::probe {
namespace {

TEST(Slices, linear_masks_slices_and_modulo_stage_of_a_planted_h100_are_recovered) {
  auto memory = planted_memory("h100", 1).value();
  const auto found = find_slices(*memory, {}, {}).value();
  EXPECT_TRUE(found.decided);
  EXPECT_EQ(found.model.clusters.sizes.size(), 80U);
  EXPECT_TRUE(gf2_same_space(found.model.masks, memory->truth().module.rows));
  ASSERT_TRUE(found.remainders);
  EXPECT_EQ(found.remainders->slices, 80U);
  EXPECT_EQ(found.remainders->stage, memory->truth().stack);
}

TEST(Slices, page_constants_agree_with_the_planted_ones_up_to_that_of_the_reference_page) {
  auto memory = planted_memory("h100", 2).value();
  const SliceOptions options = few_sms();
  const auto slices = find_slices(*memory, options, {}).value();
  constexpr std::uint64_t pages = 64;
  const auto found = find_page_constants(*memory, slices, options, pages, 24, {}).value();
  EXPECT_EQ(found.uncertain, 0U);
  const auto coloring =
      color::Coloring::make(slices.model.masks, memory->facts().page_bytes).value();
  for (std::uint64_t page = 0; page < pages; ++page) {
    const auto planted = memory->page_constant(page) ^ memory->page_constant(0);
    EXPECT_EQ(found.constants[page],
              coloring.constant_from_rows(memory->truth().module.rows, planted).value());
  }
}

TEST(Slices, the_verdict_tells_masks_that_isolate_everything_from_those_of_dram_reads) {
  auto truth = planted_truth("h100").value();
  truth.facts.pages = 600;
  truth.facts.l2_bytes = 4U << 20U;
  PlantedMemory memory(truth, 3);
  ProbeOptions options;
  options.slices = few_sms();
  options.conflicts.dram_bytes = std::uint64_t{32} << 20U;
  const auto report = probe_memory(memory, options, {}).value();
  EXPECT_TRUE(report.decided);
  ASSERT_TRUE(report.conflicts.has_value());
  EXPECT_TRUE(gf2_same_space(report.conflicts->isolating, truth.cache_module.rows));
  EXPECT_TRUE(gf2_same_space(report.conflicts->isolating_dram, truth.module.rows));
  ASSERT_EQ(report.conflicts->modules.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      if (i == j) {
        EXPECT_GT(report.conflicts->modules[i][j], 1.5);
      } else {
        EXPECT_LT(report.conflicts->modules[i][j], 1.2);
      }
    }
  }
  EXPECT_NE(report_to_text(report).find("0xc4000"), std::string::npos);
  EXPECT_NE(report_to_json(report).find("demarc.probe.memory/1"), std::string::npos);
}

}  // namespace
}  // namespace demarc::probe
