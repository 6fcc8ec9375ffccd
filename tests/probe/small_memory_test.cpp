// The whole probe on memories so small that it takes no time: what it concludes, and what it
// refuses to conclude.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/gf2.hpp"
#include "demarc/probe/probe.hpp"
#include "kept_report.hpp"
#include "planted_memory.hpp"

namespace demarc::probe {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Le;
using testing::SizeIs;

// Pages of unknown place: 4 modules of 3 slices each; L2 hits and writes share only what the sum of
// both masks tells.
PlantedTruth hidden() {
  PlantedTruth truth;
  truth.facts.name = "small";
  truth.facts.page_bytes = 1U << 17U;
  truth.facts.pages = 112;
  truth.facts.sms = 24;
  truth.facts.l2_bytes = 1U << 20U;
  truth.module.rows = {0x05400, 0x0b800};
  truth.cache_module.rows = {0x05400 ^ 0x0b800};
  truth.stack.modulus = 3;
  truth.stack.number.rows = {0x11100, 0x12200, 0x04800, 0x10000};
  return truth;
}

ProbeOptions small_streams() {
  ProbeOptions options;
  options.slices.sms = 12;
  options.conflicts.dram_bytes = 2U << 20U;
  return options;
}

MemoryReport probed(const PlantedTruth& truth, const ProbeOptions& options = small_streams(),
                    const Progress& progress = {}) {
  PlantedMemory memory(truth, 7);
  return probe_memory(memory, options, progress).value();
}

TEST(SmallHiddenMemory, every_part_of_it_is_found_and_said) {
  const PlantedTruth truth = hidden();
  ProgressSeen progress;
  const MemoryReport report = probed(truth, small_streams(), progress.note());
  ASSERT_TRUE(report.decided) << report_to_text(report);
  EXPECT_TRUE(gf2_same_space(report.map.module.rows, truth.module.rows));
  EXPECT_EQ(report.map.slices, 12U);
  EXPECT_EQ(report.map.page_bytes, truth.facts.page_bytes);
  EXPECT_EQ(report.map.address_bits, 17U);
  EXPECT_EQ(report.map.interleave_bytes, 256U);
  EXPECT_EQ(report.pages->constants.size(), 112U);
  EXPECT_EQ(report.pages->uncertain, 0U);
  std::uint32_t counted = 0;
  for (const auto pages : report.pages->pages_per_constant) counted += pages;
  EXPECT_EQ(counted, 112U);
  EXPECT_THAT(report.verdict, Contains(HasSubstr("4 modules, constant over 1024 bytes")));
  EXPECT_GT(report.pages->seconds, 0);
  EXPECT_GT(report.seconds, report.pages->seconds);
  expect_kept_report("small_hidden", report, progress);
}

TEST(SmallHiddenMemory, a_mask_that_isolates_reads_alone_is_not_said_to_isolate) {
  const PlantedTruth truth = hidden();
  const ConflictFinding found = *probed(truth).conflicts;
  ASSERT_THAT(found.masks, SizeIs(3));
  for (const MaskConflict& entry : found.masks) {
    EXPECT_TRUE(entry.isolates_dram) << entry.other.mask;
    EXPECT_EQ(entry.isolates, entry.other.mask == truth.cache_module.rows[0]) << entry.other.mask;
    EXPECT_LT(entry.other.dram_read, 1.1);
    EXPECT_NEAR(entry.same.dram_read, 2.3, 0.05) << entry.same.mask;
    EXPECT_NEAR(entry.same.dram_write, 4.3, 0.05) << entry.same.mask;
    EXPECT_NEAR(entry.same.l2_read, 1.4, 0.05) << entry.same.mask;
    EXPECT_NEAR(entry.same.l2_write, 2.5, 0.05) << entry.same.mask;
    EXPECT_NEAR(entry.other.l2_write, entry.isolates ? 1 : 2.5, 0.05) << entry.same.mask;
  }
  EXPECT_EQ(found.isolating, truth.cache_module.rows);
  EXPECT_TRUE(gf2_same_space(found.isolating_dram, truth.module.rows));
  ASSERT_THAT(found.modules, SizeIs(4));
  for (std::size_t victim = 0; victim < 4; ++victim) {
    for (std::size_t aggressor = 0; aggressor < 4; ++aggressor) {
      EXPECT_EQ(found.modules[victim][aggressor] > 1.5, victim == aggressor);
    }
  }
}

TEST(SmallHiddenMemory, colours_are_counted_by_what_they_keep_apart) {
  const MemoryReport report = probed(hidden());
  ASSERT_FALSE(report.colors.empty());
  EXPECT_EQ(report.colors.front().granularity, 1024U);
  EXPECT_EQ(report.colors.front().dram, 4U);
  EXPECT_EQ(report.colors.front().all, 2U);
  EXPECT_EQ(report.colors.back().dram, 1U);  // no mask is left at the last size
  EXPECT_EQ(report.colors.back().all, 1U);
  EXPECT_EQ(report.map.isolation.size(), 3U);
  EXPECT_THAT(report.verdict, Contains(HasSubstr("2 at 1 KiB (4 for DRAM reads alone)")));
  EXPECT_THAT(report.verdict, Contains(HasSubstr("apart: 0xec00 (and their sums)")));
}

TEST(SmallHiddenMemory, no_mask_is_said_to_isolate_where_every_write_is_felt) {
  PlantedTruth truth = hidden();
  truth.cache_module.rows.clear();  // all share it
  const MemoryReport report = probed(truth);
  EXPECT_TRUE(report.conflicts->isolating.empty());
  EXPECT_THAT(report.verdict, Contains(HasSubstr("no linear mask keeps")));
  expect_kept_report("small_hidden_without_colours", report);
  for (const auto& entry : report.conflicts->masks) EXPECT_FALSE(entry.isolates);
  EXPECT_EQ(report.colors.front().all, 1U);
}

TEST(SmallHiddenMemory, only_the_pages_asked_for_are_measured) {
  ProbeOptions options = small_streams();
  options.pages = 100;
  EXPECT_EQ(probed(hidden(), options).pages->constants.size(), 100U);
  options.pages = 1000;  // more than there are
  EXPECT_EQ(probed(hidden(), options).pages->constants.size(), 112U);
}

TEST(SmallHiddenMemory, pages_that_cannot_be_told_apart_are_counted_and_nothing_is_decided) {
  PlantedTruth truth = hidden();
  const PlantedTruth clear = truth;
  PlantedMemory memory(clear, 7);
  const SliceFinding slices = find_slices(memory, small_streams().slices, {}).value();
  truth.noise.hit_jitter = 400;
  PlantedMemory noisy(truth, 7);
  const auto pages = find_page_constants(noisy, slices, small_streams().slices, 20, 24, {}).value();
  EXPECT_GT(pages.uncertain, 10U);
}

TEST(SmallHiddenMemory, questions_of_physical_addresses_are_refused) {
  PlantedMemory memory(hidden(), 1);
  const std::uint64_t one[] = {4096};
  EXPECT_EQ(memory.uncached_pairs(0, one).error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(memory.reread(0, one, one).error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(memory.crowded_read(0, one).error().kind, ErrorKind::missing_capability);
}

// Addresses as the card has them: 8 banks, 16 sets of 4 lines; one mask is in both, so 2 modules.
PlantedTruth physical() {
  PlantedTruth truth;
  truth.facts.name = "small physical";
  truth.facts.physical_addresses = true;
  truth.facts.address_bits = 22;
  truth.facts.sms = 4;
  truth.facts.l2_bytes = 16 * 4 * 128;
  truth.bank.rows = {0x042400, 0x084800, 0x101000};
  truth.set.rows = {0x042400, 0x000280, 0x010100, 0x200200};
  truth.module.rows = {0x042400};
  truth.cache_module = truth.module;
  truth.ways = 4;
  truth.miss_registers = 12;
  return truth;
}

TEST(SmallPhysicalMemory, banks_sets_modules_and_registers_are_found_and_said) {
  const PlantedTruth truth = physical();
  ProgressSeen progress;
  const MemoryReport report = probed(truth, small_streams(), progress.note());
  ASSERT_TRUE(report.decided) << report_to_text(report);
  EXPECT_TRUE(gf2_same_space(report.map.bank.rows, truth.bank.rows));
  EXPECT_TRUE(gf2_same_space(report.map.set.rows, truth.set.rows));
  EXPECT_EQ(report.map.module.rows, truth.module.rows);
  EXPECT_EQ(report.map.cache_ways, 4U);
  EXPECT_EQ(report.map.slices, 2U);
  EXPECT_EQ(report.map.address_bits, 22U);
  EXPECT_EQ(report.map.interleave_bytes, 1024U);
  EXPECT_EQ(report.map.miss_registers, 12U);
  EXPECT_THAT(report.verdict, Contains("2 modules, 8 banks, 16 sets of 4 lines of 128 bytes"));
  EXPECT_THAT(report.verdict, Contains(HasSubstr("colours made of modules isolate")));
  EXPECT_THAT(report.verdict, Contains(HasSubstr("a module has 12 miss-status registers")));
  EXPECT_EQ(report.colors.front().all, 2U);
  EXPECT_GT(report.bank->confusion.agreement(), 0.9);
  EXPECT_LE(report.bank->wrong_pairs, report.bank->pairs / 5);
  expect_kept_report("small_physical", report, progress);
}

TEST(SmallPhysicalMemory, where_there_is_one_module_nothing_is_said_of_another) {
  PlantedTruth truth = physical();
  truth.bank.rows[0] ^= 0x080000;
  truth.module.rows.clear();
  truth.cache_module.rows.clear();
  const MemoryReport report = probed(truth);
  ASSERT_TRUE(report.decided) << report_to_text(report);
  EXPECT_EQ(report.map.module.count(), 1U);
  EXPECT_EQ(report.map.interleave_bytes, 0U);
  EXPECT_THAT(report.verdict, Contains(HasSubstr("there is only one module, so")));
  EXPECT_THAT(report.verdict, Contains("colours by masks: none"));
  EXPECT_TRUE(report.windows.known);
  EXPECT_THAT(report.windows.reason, HasSubstr("no colours were found that isolate"));
}

TEST(SmallPhysicalMemory, a_hash_that_cannot_be_decided_is_said_with_its_name) {
  PlantedTruth truth = physical();
  truth.noise.false_pairs = 0.6;
  const MemoryReport report = probed(truth);
  EXPECT_FALSE(report.decided);
  EXPECT_FALSE(report.module);
  EXPECT_THAT(report.verdict, Contains(HasSubstr("the bank hash could not be decided: ")));
  expect_kept_report("small_physical_not_decided", report);
}

TEST(SmallPhysicalMemory, a_cache_whose_hits_look_like_misses_has_no_set_hash) {
  PlantedTruth truth = physical();
  truth.ways = 100'000;  // nothing is ever evicted
  PlantedMemory memory(truth, 3);
  Random random(1);
  const HashFinding found = find_set_hash(memory, {}, random, {}).value();
  EXPECT_FALSE(found.decided);
  EXPECT_THAT(found.reason, HasSubstr("cannot be told from a miss"));
}

}  // namespace
}  // namespace demarc::probe
