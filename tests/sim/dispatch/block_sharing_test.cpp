// The `locality` policy and the maps it reads.
#include "demarc/sim/dispatch/block_sharing.hpp"

#include <gtest/gtest.h>

#include "demarc/sim/dispatch/machine.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"

namespace demarc::sim {
namespace {

const std::string map_of_four =
    R"({"schema": "demarc.locality/1", "kernel": "k", "inter": {"degree_of_sharing": 0.1,
        "map": {"size": 4}, "sets": [[64, [0, 2]], [64, [1, 3]], [1, [2, 3]]]}})";

TEST(BlockSharing, reads_the_sets_of_blocks) {
  const auto sharing = parse_block_sharing(map_of_four, "m.json").value();
  EXPECT_EQ(sharing.blocks(), 4U);
  ASSERT_EQ(sharing.sets().size(), 3U);
  const auto of_the_last = sharing.sets_of(BlockNumber(3));
  ASSERT_EQ(of_the_last.size(), 2U);
  EXPECT_EQ(sharing.sets()[of_the_last[0]].places, 64U);
  EXPECT_EQ(sharing.sets()[of_the_last[1]].places, 1U);
  EXPECT_TRUE(sharing.sets_of(BlockNumber(9)).empty());
}

std::vector<std::uint32_t> order_of(std::uint32_t blocks, const std::vector<SharedPlaces>& sets) {
  const BlockSharing sharing(blocks, sets);
  std::vector<std::uint32_t> order;
  for (const BlockNumber block : sharing.order()) order.push_back(block.raw());
  return order;
}

TEST(BlockSharing, leaves_out_blocks_beyond_its_size_and_sets_of_one_block) {
  const BlockNumber zero(0);
  const BlockSharing sharing(2, {{5, {zero, BlockNumber(2)}}, {6, {zero, BlockNumber(1)}}});
  ASSERT_EQ(sharing.sets().size(), 1U);
  EXPECT_EQ(sharing.sets()[BlockSharing::SetIndex()].places, 6U);
}

TEST(BlockSharing, orders_blocks_without_sharing_by_number) {
  EXPECT_EQ(order_of(3, {}), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(BlockSharing, puts_those_that_share_most_next_to_each_other) {
  const auto set = [](std::uint64_t places, std::uint32_t a, std::uint32_t b) {
    return SharedPlaces{places, {BlockNumber(a), BlockNumber(b)}};
  };
  EXPECT_EQ(order_of(4, {set(1, 0, 1), set(2, 0, 3)}), (std::vector<std::uint32_t>{0, 3, 1, 2}));
  // 0 and 4, and 1 and 2, come together first, then 3 joins the first of these pairs.
  EXPECT_EQ(order_of(6, {set(9, 0, 4), set(9, 1, 2), set(3, 3, 4), set(4, 2, 3), set(1, 0, 5)}),
            (std::vector<std::uint32_t>{0, 4, 3, 1, 2, 5}));
}

// A block of a product of matrices reads what its row reads and what its column reads.
TEST(BlockSharing, orders_the_blocks_of_a_matrix_product_as_squares) {
  constexpr std::uint32_t side = 4;
  std::vector<SharedPlaces> sets;
  for (std::uint32_t i = 0; i < side; ++i) {
    SharedPlaces row{8, {}};
    SharedPlaces column{8, {}};
    for (std::uint32_t j = 0; j < side; ++j) {
      row.blocks.emplace_back(i * side + j);
      column.blocks.emplace_back(j * side + i);
    }
    sets.insert(sets.end(), {row, column});
  }
  EXPECT_EQ(order_of(side * side, sets),
            (std::vector<std::uint32_t>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
}

void expect_sharing_error(const std::string& text, const std::string& message) {
  const auto sharing = parse_block_sharing(text, "m.json");
  ASSERT_FALSE(sharing);
  EXPECT_EQ(sharing.error().message.substr(0, message.size()), message);
}

TEST(BlockSharing, errors_name_file_and_key) {
  expect_sharing_error(R"({"schema": "x/1"})", "m.json: schema 'x/1': expected demarc.locality/1");
  expect_sharing_error(R"({"schema": "demarc.locality/1", "inter": {"sets": []}})",
                       "m.json: inter.map is missing");
  expect_sharing_error(R"({"schema": "demarc.locality/1", "inter": {"map": {"size": 2}}})",
                       "m.json: inter.sets is missing");
  const auto refused = [](const std::string& set, const std::string& message) {
    expect_sharing_error(
        R"({"schema": "demarc.locality/1", "inter": {"map": {"size": 2}, "sets": [)" + set + "]}}",
        "m.json: inter.sets[" + message);
  };
  for (const char* set : {"3", "[1, [0, 1], 2]", R"(["1", [0, 1]])", "[1, 0]", "[1, [0, -1]]"}) {
    refused(set, "0]: expected [places, [block, ...]]");
  }
  const std::string first = "[1, [0, 1]], ";
  refused(first + "[1, [0, 2]]", "1]: expected blocks that ascend and are below 2");
  refused(first + "[1, [1, 1]]", "1]: expected blocks that ascend and are below 2");
}

// The SM of each block.
class Places final : public TbObserver {
 public:
  void placed(TbTicks /*tick*/, SmIndex sm, KernelIndex /*kernel*/, BlockNumber block) override {
    EXPECT_TRUE(sms.emplace(block.raw(), sm.raw()).second) << block.raw();
  }
  std::map<std::uint32_t, std::uint32_t> sms;
};

std::vector<std::uint32_t> places_of(const TbConfig& config, TbOptions options) {
  Places places;
  options.policy = "locality";
  options.observer = &places;
  EXPECT_TRUE(simulate(config, options));
  std::vector<std::uint32_t> sms;
  for (const auto& [block, sm] : places.sms) sms.push_back(sm);
  return sms;
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
  EXPECT_EQ(places_of(four_blocks(), options), (std::vector<std::uint32_t>{0, 1, 0, 1}));
}

// The map knows blocks 0 and 1, or eight of which the kernel has four.
TEST(LocalityPolicy, places_every_block_once_where_map_and_kernel_differ_in_size) {
  TbOptions options;
  options.sharing[3] = BlockSharing(2, {{5, {BlockNumber(0), BlockNumber(1)}}});
  EXPECT_EQ(places_of(four_blocks(), options), (std::vector<std::uint32_t>{0, 0, 1, 1}));
  options.sharing[3] = BlockSharing(
      8, {{5, {BlockNumber(0), BlockNumber(3)}}, {9, {BlockNumber(1), BlockNumber(7)}}});
  EXPECT_EQ(places_of(four_blocks(), options), (std::vector<std::uint32_t>{0, 1, 1, 0}));
}

TEST(LocalityPolicy, an_sm_with_nothing_left_takes_half_of_what_another_has) {
  const BlockSharing sharing(8, {});
  PolicySettings settings;
  settings.sharing = {&sharing};
  const auto policy = find_policy("locality").value()->make(settings);
  Machine machine({2, 1, 1, {100}});
  const std::vector<std::uint32_t> request{1};
  std::vector<std::uint32_t> given;
  const auto next = [&] {
    const BlockRequest block{request, KernelIndex(), BlockNumber(given.size()), 8};
    const SmIndex sm = policy->choose(machine, block);
    machine.place(sm, block);
    given.push_back(policy->given().front().raw());
    return sm;
  };
  EXPECT_EQ(next(), SmIndex(0));
  EXPECT_EQ(next(), SmIndex(1));
  const std::vector<std::uint32_t> rest{99};
  machine.place(SmIndex(1), {rest, KernelIndex(1), BlockNumber(), 1});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(next(), SmIndex(0));
  EXPECT_EQ(given, (std::vector<std::uint32_t>{0, 4, 1, 2, 3, 6, 7, 5}));
}

TEST(LocalityPolicy, without_a_map_for_its_type_groups_neighbours) {
  TbOptions options;
  options.sharing[4] = parse_block_sharing(map_of_four, "m.json").value();
  EXPECT_EQ(places_of(four_blocks(), options), (std::vector<std::uint32_t>{0, 0, 1, 1}));
}

// One SM runs one block at a time: those that share meet on it, but not at the same time.
TEST(LocalityPolicy, sharing_between_blocks_that_do_not_run_together_is_not_kept) {
  TbStudyRequest request;
  request.sharing[0] = parse_block_sharing(map_of_four, "m.json").value();
  request.policies = {"locality"};
  TbConfig config = four_blocks();
  config.sm.n_sms = 1;
  config.sm.max = {1};
  const std::string report = report_schedule(config, request)->json;
  EXPECT_NE(report.find("\"sharing_kept\": 0.0"), std::string::npos) << report;
}

TEST(LocalityPolicy, the_report_says_how_much_sharing_stayed_on_one_sm) {
  TbStudyRequest request;
  request.sharing[0] = parse_block_sharing(map_of_four, "m.json").value();
  request.policies = {"locality", "dfa"};
  const std::string report = report_schedule(four_blocks(), request)->json;
  EXPECT_NE(report.find("\"sharing_kept\": 0.992"), std::string::npos) << report;
  EXPECT_NE(report.find("\"sharing_kept\": 0.007"), std::string::npos) << report;
}

}  // namespace
}  // namespace demarc::sim
