// demarc probe memory on simulated devices.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "demarc/base/files.hpp"
#include "demarc/base/gf2.hpp"
#include "demarc/base/json.hpp"
#include "demarc/device/device.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using ::testing::HasSubstr;

TEST(ProbeVerb, the_functions_of_a_simulated_gtx_1080_are_found_exactly_and_written_for_use) {
  const gpu::AddressMap published = *gpu::find_device("gtx1080").value().address_map;
  const auto folder = fresh_folder("probe_verb");
  const std::string file = (folder / "found.json").string();
  const std::string report = (folder / "report.json").string();
  const Outcome outcome = run_demarc({"probe", "memory", "--device", "sim:gtx1080", "--seed", "2",
                                      "-o", file, "--json=" + report});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("memory of GTX 1080 (simulated): structure found"));
  EXPECT_EQ(Json::parse(read_file(report).value())["decided"], true);
  const auto found = gpu::read_device(file);
  ASSERT_TRUE(found) << found.error().message;
  const gpu::AddressMap& map = found->address_map.value();
  EXPECT_TRUE(gf2_same_space(map.bank.rows, published.bank.rows));
  EXPECT_TRUE(gf2_same_space(map.set.rows, published.set.rows));
  EXPECT_TRUE(gf2_same_space(map.module.rows, published.module.rows));
  EXPECT_EQ(map.cache_ways, 16U);
  EXPECT_EQ(map.miss_registers, 16U);
}

// Rows that cost nothing to open: banks are not felt.
TEST(ProbeVerb, a_memory_that_is_not_decided_ends_with_3_and_nothing_is_written_for_use) {
  const auto folder = fresh_folder("probe_undecided");
  std::string text = read_file(source_dir() / "devices" / "gtx1080.json").value();
  for (const char* name : {"precharge_ns", "activate_ns", "row_cycle_ns"}) {
    text = std::regex_replace(text, std::regex(fmt::format("\"{}\":[0-9.]+", name)),
                              fmt::format("\"{}\":0", name));
  }
  const std::string device = (folder / "flat.json").string();
  ASSERT_TRUE(write_file(device, text));
  const std::string file = (folder / "found.json").string();
  const Outcome outcome =
      run_demarc({"probe", "memory", "--device", "sim:" + device, "-o", file, "--json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("the structure of the memory could not be decided"));
  EXPECT_EQ(Json::parse(outcome.out)["decided"], false);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(ProbeVerb, a_device_that_cannot_be_simulated_ends_with_2_and_says_what_its_description_lacks) {
  const Outcome outcome = run_demarc({"probe", "memory", "--device", "sim:h100-80gb-hbm3"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("memory_system"));
  EXPECT_EQ(run_demarc({"probe", "memory", "--device", "sim:zzz"}).exit_code, 1);
}

TEST(ProbeVerb, a_planted_hierarchy_is_found_again_as_text_and_as_json) {
  const std::string file = (fresh_folder("probe_translation") / "found.json").string();
  const Outcome outcome =
      run_demarc({"probe", "translation", "--device", "planted:h200", "--json=" + file});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("translation of planted:h200, peer planted:h200, second"));
  EXPECT_THAT(outcome.out, HasSubstr("lines of peer memory are not kept in the card's own L2"));
  const Json report = Json::parse(read_file(file).value());
  EXPECT_EQ(report["schema"], "demarc.probe.translation/1");
  const Json& levels = report["places"][0]["tlbs"]["levels"];
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_EQ(levels[0]["reach_pages"], 16);
  EXPECT_NEAR(levels[1]["reach_pages"].get<double>(), 512, 40);
  EXPECT_NEAR(levels[2]["reach_pages"].get<double>(), 16384, 500);
  EXPECT_EQ(levels[2]["pages_per_entry"], 16);
  EXPECT_NEAR(levels[2]["miss_cycles"].get<double>(), 120, 5);
}

TEST(ProbeVerb, translation_of_what_has_none_is_refused_by_name) {
  const Outcome simulated = run_demarc({"probe", "translation", "--device", "sim:gtx1080"});
  EXPECT_EQ(simulated.exit_code, 1);
  EXPECT_EQ(simulated.out, "");
  EXPECT_THAT(simulated.err, HasSubstr("--device sim:gtx1080: a simulated card is not probed for "
                                       "TLBs: it has those of its description"));
  EXPECT_EQ(run_demarc({"probe", "translation", "--device", "planted:zzz"}).exit_code, 1);
  EXPECT_EQ(run_demarc({"probe", "translation", "--memory-gib", "101"}).exit_code, 1);
}

}  // namespace
}  // namespace demarc::test
