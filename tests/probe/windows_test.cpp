// What the probe says of windows: whether a page table can divide the colours that were found.
#include <gtest/gtest.h>

#include <utility>

#include "demarc/probe/probe.hpp"
#include "planted_memory.hpp"

namespace demarc::probe {
namespace {

using color::PageColors;

// So few pages, and so small an L2, that it takes no time.
WindowFinding windows_of(PlantedTruth truth) {
  if (!truth.facts.physical_addresses) {
    truth.facts.pages = 700;
    truth.facts.l2_bytes = 4U << 20U;
  }
  PlantedMemory memory(std::move(truth), 5);
  ProbeOptions options;
  options.conflicts.dram_bytes = 8U << 20U;
  options.slices.sms = 16;
  return probe_memory(memory, options, {}).value().windows;
}

// The tables that Fractional GPUs (RTAS 2019) published, found again by times.
TEST(ProbedWindows, of_a_gtx_1080_have_two_colours_and_of_a_v100_eight_at_4_kib) {
  EXPECT_EQ(windows_of(planted_truth("gtx1080").value()).colors, (PageColors{2, 4096}));
  EXPECT_EQ(windows_of(planted_truth("v100").value()).colors, (PageColors{8, 4096}));
}

// Two masks that are one within the pages of 2 MiB in which the driver gives memory.
TEST(ProbedWindows, have_the_colours_within_a_page_of_the_driver) {
  PlantedTruth truth;
  truth.facts.name = "small physical";
  truth.facts.physical_addresses = true;
  truth.facts.address_bits = 22;
  truth.facts.sms = 4;
  truth.facts.l2_bytes = 16 * 4 * 128;
  truth.bank.rows = {0x201000, 0x001000, 0x084800};
  truth.set.rows = {0x201000, 0x001000, 0x000280, 0x010100};
  truth.module.rows = {0x201000, 0x001000};
  truth.cache_module = truth.module;
  truth.ways = 4;
  truth.miss_registers = 12;
  EXPECT_EQ(windows_of(truth).colors, (PageColors{2, 4096}));
}

TEST(ProbedWindows, of_an_h100_have_four_colours_in_runs_of_8_kib) {
  const WindowFinding found = windows_of(planted_truth("h100").value());
  EXPECT_TRUE(found.known);
  EXPECT_EQ(found.colors, (PageColors{4, 8192})) << found.reason;
}

// As a program meets these cards: it gets pages of 2 MiB and does not know where they lie.
TEST(ProbedWindows, of_a_gtx_1080_and_a_v100_are_the_same_where_addresses_are_hidden) {
  for (const auto& [card, colors] : {std::pair("gtx1080", 2U), std::pair("v100", 8U)}) {
    PlantedTruth truth = planted_truth("h100").value();
    truth.module = planted_truth(card)->module;
    for (std::uint64_t& mask : truth.module.rows) mask &= truth.facts.page_bytes - 1;
    truth.cache_module = truth.module;
    truth.stack = {};
    const WindowFinding found = windows_of(std::move(truth));
    EXPECT_EQ(found.colors, (PageColors{colors, 4096})) << card << ": " << found.reason;
  }
}

}  // namespace
}  // namespace demarc::probe
