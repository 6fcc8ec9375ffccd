// What the report of a probe says, line by line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/probe/probe.hpp"

namespace demarc::probe {
namespace {

using testing::HasSubstr;
using testing::Not;

MemoryReport written() {
  MemoryReport report;
  report.facts.name = "card";
  report.facts.l2_bytes = 4096;
  report.decided = true;
  report.seconds = 1.25;
  report.verdict = {"first", "second"};
  report.map.module.rows = {0x400};
  report.colors = {{1024, 4, 2}};
  report.windows = {true, color::PageColors{4, 8192}, {}};
  return report;
}

HashFinding bank() {
  HashFinding finding;
  finding.what = "bank";
  finding.reason = "because";
  finding.decided = true;
  finding.hash.rows = {0x1, 0x8000000000000005};
  finding.measured = 900;
  finding.pairs = 88;
  finding.wrong_pairs = 7;
  finding.threshold = 540;
  finding.ways = 16;
  finding.confusion = {91, 2, 3, 104};
  finding.times = {500, 10, {1, 0, 9}};
  return finding;
}

TEST(ReportText, an_undecided_memory_is_said_first) {
  MemoryReport report = written();
  EXPECT_THAT(report_to_text(report),
              testing::StartsWith("memory of card: structure found in 1.2 s\n- first\n- second\n"
                                  "- windows: yes: "));
  report.decided = false;
  EXPECT_THAT(report_to_text(report), testing::StartsWith("memory of card: NOT decided in"));
}

TEST(ReportText, windows_are_possible_or_not_or_not_known) {
  MemoryReport report = written();
  EXPECT_THAT(report_to_text(report),
              HasSubstr("\n- windows: yes: 4 colours change only every 8 KiB, so the page table "
                        "(pages of 4 KiB) can divide them, and code without PTX can run in a "
                        "tenant\n"));
  report.windows = {true, {}, "because"};
  EXPECT_THAT(report_to_text(report), HasSubstr("\n- windows: no: because\n"));
  report.windows.known = false;
  EXPECT_THAT(report_to_text(report), HasSubstr("\n- windows: not known: because\n"));
}

TEST(ReportJson, windows_are_true_or_false_or_null) {
  MemoryReport report = written();
  EXPECT_EQ(Json::parse(report_to_json(report))["windows"],
            Json::parse(R"({"possible": true, "colours": 4, "granule_bytes": 8192,
                            "reason": null})"));
  report.windows = {true, {}, "because"};
  EXPECT_EQ(Json::parse(report_to_json(report))["windows"],
            Json::parse(R"({"possible": false, "colours": null, "granule_bytes": null,
                            "reason": "because"})"));
  report.windows.known = false;
  EXPECT_TRUE(Json::parse(report_to_json(report))["windows"]["possible"].is_null());
}

TEST(ReportText, a_hash_is_its_bits_its_pairs_and_its_histogram) {
  MemoryReport report = written();
  report.bank = bank();
  const std::string text = report_to_text(report);
  EXPECT_THAT(text, HasSubstr("\nbank hash: because\n  X(0)\n  X(0,2,63)\n"));
  EXPECT_THAT(text, HasSubstr("900 pairs timed, 88 conflicts above 540 cycles, 7 contradict"));
  EXPECT_THAT(text, HasSubstr("predicted same                      91                2\n"));
  EXPECT_THAT(text, HasSubstr("predicted other                      3              104\n"));
  // Empty bins are left out; the bars grow with the logarithm.
  EXPECT_THAT(text, HasSubstr("      500 cycles        1 #\n      520 cycles        9 #######\n"));
  report.bank->times.counts.pop_back();  // what lay there is no bin any more
  EXPECT_THAT(report_to_text(report), Not(HasSubstr("520 cycles")));
  report.bank->times.counts = {0, 0};
  EXPECT_THAT(report_to_text(report), Not(HasSubstr(" #")));
  report.bank->times.counts.clear();
  EXPECT_THAT(report_to_text(report), Not(HasSubstr(" #")));
}

TEST(ReportText, curves_are_shown_every_four_threads) {
  MemoryReport report = written();
  report.module.emplace();
  report.module->curves = {{"SCSB", {1, 2, 3, 4, 5, 6}}, {"DM", {7, 7, 7, 7, 8, 9}}};
  EXPECT_THAT(report_to_text(report), HasSubstr("  threads    SCSB      DM\n"
                                                "        0       1       7\n"
                                                "        4       5       8\n"));
  report.module->curves.clear();
  EXPECT_THAT(report_to_text(report), HasSubstr("  threads\n"));
}

TEST(ReportText, slices_are_sorted_and_twenty_votes_are_shown) {
  MemoryReport report = written();
  report.slices.emplace();
  auto& model = report.slices->model;
  report.slices->reason = "so many kinds";
  model.chunk_bytes = 256;
  model.clusters.sizes = {30, 10, 20};
  model.clusters.residual_histogram = {5, 4};
  for (std::uint64_t vote = 1; vote <= 22; ++vote) model.votes.push_back({vote << 12U, 0.5});
  const std::string text = report_to_text(report);
  EXPECT_THAT(
      text,
      HasSubstr("slices by latency: so many kinds\n  chunks of 256 bytes per slice: 10 20 30\n"));
  EXPECT_THAT(text, HasSubstr("in quarters of the noise: 5 4\n"));
  EXPECT_THAT(text, HasSubstr("      0x1000  50.0 %\n"));
  EXPECT_THAT(text, HasSubstr("0x14000  50.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("0x15000")));
}

ConflictFinding conflicts() {
  ConflictFinding finding;
  finding.masks = {{{0x1000, 1.01, 1.02, 1.03, 1.04}, {0x1000, 2.01, 2.02, 2.03, 2.04}, true, true},
                   {{0x2000, 1.0, 1.5, 1.0, 1.5}, {0x2000, 2.0, 2.5, 2.0, 2.5}, true, false},
                   {{0x3000, 1.4, 1.5, 1.3, 1.5}, {0x3000, 2.0, 2.5, 2.0, 2.5}, false, false}};
  finding.isolating = {0x1000};
  finding.isolating_dram = {0x1000, 0x2000};
  finding.modules = {{2.0, 1.0}, {1.1, 2.1}};
  return finding;
}

TEST(ReportText, each_mask_is_said_to_isolate_what_it_does) {
  MemoryReport report = written();
  report.conflicts = conflicts();
  const std::string text = report_to_text(report);
  EXPECT_THAT(text, HasSubstr("   0x1000    1.01 (2.01)    1.02 (2.02)    1.03 (2.03)    1.04 "
                              "(2.04) isolates\n"));
  EXPECT_THAT(text, HasSubstr("1.50 (2.50) isolates DRAM reads\n"));
  EXPECT_THAT(text, HasSubstr("   0x3000    1.40 (2.00)    1.50 (2.50)    1.30 (2.00)    1.50 "
                              "(2.50) \n"));
  EXPECT_THAT(text, HasSubstr("in another\n  2.00 1.00\n  1.10 2.10\n"));
  report.conflicts->modules.clear();
  EXPECT_THAT(report_to_text(report), Not(HasSubstr("in another")));
}

TEST(ReportText, remainders_are_shown_with_their_groups) {
  MemoryReport report = written();
  report.remainder_conflicts = {{0, 0, 1}, 2, 1.9, 1.1, 64, 3};
  EXPECT_THAT(report_to_text(report), HasSubstr("(64 pages, 3 uncertain):\n  0 0 1\n"));
}

TEST(ReportJson, holds_what_was_found_and_nothing_else) {
  const Json json = Json::parse(report_to_json(written()));
  EXPECT_EQ(json["schema"], report_schema);
  EXPECT_EQ(json["memory"], "card");
  EXPECT_EQ(json["decided"], true);
  EXPECT_EQ(json["l2_bytes"], 4096);
  EXPECT_EQ(json["modules"], 2);
  EXPECT_EQ(json["module_masks"], Json::parse(R"(["0x400"])"));
  EXPECT_EQ(
      json["colours"],
      Json::parse(R"([{"granularity_bytes": 1024, "colours": 2, "colours_for_dram_reads": 4}])"));
  for (const char* part :
       {"bank", "set", "module", "slices", "pages", "conflicts", "remainder_conflicts"}) {
    EXPECT_FALSE(json.contains(part)) << part;
  }
}

TEST(ReportJson, a_number_that_was_not_found_is_null) {
  MemoryReport report = written();
  report.map.slices = 8;
  EXPECT_EQ(Json::parse(report_to_json(report))["slice_count"], 8);
  report.map.slices = 0;
  EXPECT_TRUE(Json::parse(report_to_json(report))["slice_count"].is_null());
  report.map.slices = 8;
  report.decided = false;
  const Json json = Json::parse(report_to_json(report));
  EXPECT_TRUE(json["slice_count"].is_null());
  EXPECT_TRUE(json["modules"].is_null());
}

TEST(ReportJson, evidence_is_given_in_full) {
  MemoryReport report = written();
  report.bank = bank();
  report.set = bank();
  report.set->decided = false;
  report.module.emplace();
  report.module->curves = {{"DM", {7, 8}}};
  report.module->isolated = true;
  report.module->miss_registers.number = 9;
  report.slices.emplace();
  report.slices->model.votes = {{0x1000, 0.5}};
  report.slices->model.clusters.cluster = {1, 0};
  report.slices->remainders.emplace();
  report.slices->remainders->stage.modulus = 5;
  report.slices->remainders->slices = 80;
  report.pages.emplace();
  report.pages->constants = {1, 2, 3};
  report.pages->uncertain = 1;
  report.conflicts = conflicts();
  report.remainder_conflicts = {{0, 0, 1}, 2, 1.9, 1.1, 64, 3};
  const Json json = Json::parse(report_to_json(report));
  EXPECT_EQ(json["bank"]["masks"], Json::parse(R"(["0x1", "0x8000000000000005"])"));
  EXPECT_EQ(json["bank"]["confusion"]["predicted_same_measured_other"], 2);
  EXPECT_EQ(json["bank"]["confusion"]["predicted_other_measured_same"], 3);
  EXPECT_EQ(json["bank"]["contradicting"], 7);
  EXPECT_EQ(json["bank"]["times"]["counts"], Json::parse("[1, 0, 9]"));
  EXPECT_EQ(json["set"]["decided"], false);
  EXPECT_EQ(json["module"]["cycles_by_other_threads"]["DM"], Json::parse("[7.0, 8.0]"));
  EXPECT_EQ(json["module"]["isolated"], true);
  EXPECT_EQ(json["slices"]["mask_votes"][0]["mask"], "0x1000");
  EXPECT_EQ(json["slices"]["slice_of_chunk"], Json::parse("[1, 0]"));
  EXPECT_EQ(json["slices"]["remainders"]["modulus"], 5);
  EXPECT_EQ(json["slices"]["remainders"]["slices"], 80);
  EXPECT_EQ(json["pages"]["count"], 3);
  EXPECT_EQ(json["pages"]["uncertain"], 1);
  EXPECT_EQ(json["conflicts"]["masks"][1]["isolates"], false);
  EXPECT_EQ(json["conflicts"]["masks"][1]["isolates_dram_reads"], true);
  EXPECT_EQ(json["conflicts"]["masks"][0]["other_colour"]["l2_write"], 1.04);
  EXPECT_EQ(json["conflicts"]["isolating_dram_reads"], Json::parse(R"(["0x1000", "0x2000"])"));
  EXPECT_EQ(json["remainder_conflicts"]["uncertain_pages"], 3);
  EXPECT_EQ(json["remainder_conflicts"]["most_slowdown_between_groups"], 1.1);
  report.slices->remainders.reset();
  EXPECT_TRUE(Json::parse(report_to_json(report))["slices"]["remainders"].is_null());
}

}  // namespace
}  // namespace demarc::probe
