// What a configuration means under each model: where memory requests are read, what overhead costs.
#include "demarc/sim/dispatch/tb_config.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace demarc::sim {
namespace {

TbConfig config_of(std::size_t resources, std::size_t memories) {
  TbConfig config;
  config.source = "c";
  config.sm.max.resize(resources, 8);
  config.memory.resize(memories, 100);
  config.kernels.resize(1);
  config.kernels[KernelIndex(0)].line = 7;
  return config;
}

// As text: "2 3"; an error's message.
std::string fields(std::size_t resources, std::size_t memories, TbModel model) {
  const auto map = memory_fields(config_of(resources, memories), model);
  if (!map) return map.error().message;
  std::string text;
  for (const std::uint32_t field : *map) text += (text.empty() ? "" : " ") + std::to_string(field);
  return text;
}

// The published program counts fields of memories from the front where there are fewer than twelve
// resources.
TEST(MemoryFields, are_those_that_the_published_program_reads) {
  const std::vector<std::tuple<std::size_t, std::size_t, std::string, std::string>> cases{
      {1, 0, "", ""},           {1, 1, "1", "1"},          {2, 1, "1", "2"},
      {3, 1, "1", "3"},         {11, 1, "1", "11"},        {12, 1, "12", "12"},
      {2, 2, "2 3", "2 3"},     {3, 2, "2 3", "3 4"},      {10, 2, "2 3", "10 11"},
      {11, 2, "1 12", "11 12"}, {12, 2, "12 13", "12 13"}, {13, 2, "13 14", "13 14"},
  };
  for (const auto& [resources, memories, published, corrected] : cases) {
    for (const TbModel model : {TbModel::simtbs, TbModel::simtbs_2020})
      EXPECT_EQ(fields(resources, memories, model), published) << resources << ", " << memories;
    EXPECT_EQ(fields(resources, memories, TbModel::corrected), corrected)
        << resources << ", " << memories;
  }
  EXPECT_EQ(fields(1, 2, TbModel::simtbs).substr(0, 4), "c:7:");
  EXPECT_EQ(fields(1, 2, TbModel::corrected), "1 2");
  TbConfig without = config_of(1, 2);
  without.kernels.clear();
  EXPECT_TRUE(memory_fields(without, TbModel::simtbs)) << "nothing is read";
}

TEST(TbModels, are_read_back_as_they_are_written_and_others_refused) {
  for (const TbModel model : {TbModel::simtbs, TbModel::simtbs_2020, TbModel::corrected})
    EXPECT_EQ(parse_tb_model(to_string(model)).value(), model);
  EXPECT_EQ(parse_tb_model("simtbs2020").error().message,
            "unknown model 'simtbs2020': use simtbs, simtbs-2020 or corrected");
}

TEST(OverheadTable, goes_through_its_rows_from_zero_and_on_beyond_the_last) {
  OverheadTable table;
  EXPECT_EQ(table.cost(0, 0.5F), 0);
  table.rows = {{0.5F, {1, 10}, 1}, {1, {3, 10}, 2}};
  EXPECT_EQ(table.cost(0, 0), 0);
  EXPECT_EQ(table.cost(0, 0.25F), 0.5F);
  EXPECT_EQ(table.cost(0, 0.5F), 1);
  EXPECT_EQ(table.cost(0, 0.75F), 2);
  EXPECT_EQ(table.cost(0, 1), 3);
  EXPECT_EQ(table.cost(0, 1.5F), 5);
  EXPECT_EQ(table.cost(1, 0.25F), 5);
  EXPECT_EQ(table.cost(1, 2), 10);
  table.rows = {{0, {1}, 1}};
  EXPECT_TRUE(std::isnan(table.cost(0, 0)));
}

}  // namespace
}  // namespace demarc::sim
