// The `locality` policy and the maps it reads.
#include "demarc/sim/dispatch/block_sharing.hpp"

#include <gtest/gtest.h>

#include "demarc/sim/dispatch/tb_report.hpp"

namespace demarc::sim {
namespace {

const std::string map_of_four =
    R"({"schema": "demarc.locality/1", "kernel": "k", "inter": {"degree_of_sharing": 0.1,
        "map": {"size": 4, "cells": [[0, 2, 64], [1, 3, 64], [2, 3, 1]]}}})";

TEST(BlockSharing, reads_the_map_between_blocks) {
  const auto sharing = parse_block_sharing(map_of_four, "m.json").value();
  EXPECT_EQ(sharing.blocks(), 4U);
  EXPECT_TRUE(sharing.earlier(BlockNumber(0)).empty());
  const auto of_the_last = sharing.earlier(BlockNumber(3));
  ASSERT_EQ(of_the_last.size(), 2U);
  EXPECT_EQ(of_the_last[0].block, BlockNumber(1));
  EXPECT_EQ(of_the_last[0].amount, 64U);
  EXPECT_TRUE(sharing.earlier(BlockNumber(9)).empty());
}

void expect_sharing_error(const std::string& text, const std::string& message) {
  const auto sharing = parse_block_sharing(text, "m.json");
  ASSERT_FALSE(sharing);
  EXPECT_EQ(sharing.error().message.substr(0, message.size()), message);
}

TEST(BlockSharing, errors_name_file_and_key) {
  expect_sharing_error(R"({"schema": "x/1"})", "m.json: schema 'x/1': expected demarc.locality/1");
  expect_sharing_error(R"({"schema": "demarc.locality/1", "inter": {}})",
                       "m.json: inter.map is missing");
  expect_sharing_error(
      R"({"schema": "demarc.locality/1", "inter": {"map": {"size": 2, "cells": [[0, 2, 1]]}}})",
      "m.json: inter.map.cells[0]: expected row < column < 2");
  expect_sharing_error(
      R"({"schema": "demarc.locality/1", "inter": {"map": {"size": 2, "cells": [[0, 1]]}}})",
      "m.json: inter.map.cells[0]: expected [row, column, value]");
}

class Places final : public TbObserver {
 public:
  void placed(TbTicks /*tick*/, SmIndex sm, KernelIndex /*kernel*/,
              std::uint32_t /*blocks*/) override {
    sms.push_back(sm.raw());
  }
  std::vector<std::uint32_t> sms;
};

std::vector<std::uint32_t> places_of(const TbConfig& config, TbOptions options) {
  Places places;
  options.policy = "locality";
  options.observer = &places;
  EXPECT_TRUE(simulate(config, options));
  return places.sms;
}

// Two SMs of two units each, one kernel of four blocks.
TbConfig four_blocks() {
  return parse_tb_config(
             "*sm\n2 1 1 2\n*mem\n100\n*overhead_sm\n1 0.2\n*overhead_mem\n1 0.5\n*kernel\n"
             "3 1 4 5 1 1\n",
             "c")
      .value();
}

TEST(LocalityPolicy, places_a_block_beside_those_it_shares_most_with) {
  TbOptions options;
  options.sharing[3] = parse_block_sharing(map_of_four, "m.json").value();
  // 0 and 2 share, 1 and 3 do: 1 shares with nothing placed and takes the emptiest SM.
  EXPECT_EQ(places_of(four_blocks(), options), (std::vector<std::uint32_t>{0, 1, 0, 1}));
}

TEST(LocalityPolicy, without_a_map_for_its_type_groups_neighbours) {
  TbOptions options;
  options.sharing[4] = parse_block_sharing(map_of_four, "m.json").value();
  EXPECT_EQ(places_of(four_blocks(), options), (std::vector<std::uint32_t>{0, 0, 1, 1}));
}

TEST(LocalityPolicy, the_report_says_how_much_sharing_stayed_on_one_sm) {
  TbStudyRequest request;
  request.sharing[0] = parse_block_sharing(map_of_four, "m.json").value();
  request.policies = {"locality", "dfa"};
  request.json = true;
  const std::string report = report_schedule(four_blocks(), request).value();
  EXPECT_NE(report.find("\"sharing_kept\": 0.992"), std::string::npos) << report;
  EXPECT_NE(report.find("\"sharing_kept\": 0.007"), std::string::npos) << report;
}

}  // namespace
}  // namespace demarc::sim
