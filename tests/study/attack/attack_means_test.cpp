// What executors say that a neighbour can be made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attack/slice_lines.hpp"
#include "demarc/study/planted.hpp"
#include "demarc/study/sim_executor.hpp"

namespace demarc::study {
namespace {

using ::testing::HasSubstr;

TEST(NeighbourMeans, lines_of_one_slice_are_those_that_hash_as_the_first_one_does) {
  for (const char* name : {"gtx1080", "h100-sxm", "h200"}) {
    const gpu::Device card = gpu::find_device(name).value();
    const gpu::AddressMap& map = *card.address_map;
    const auto found = one_slice_lines(card);
    ASSERT_TRUE(found) << found.error().message;
    std::size_t next = 0;
    for (std::uint32_t offset = 0; offset < 1U << 21U; offset += 128) {
      const bool same = map.module(offset) == map.module(0) &&
                        (!map.stack || (*map.stack)(offset) == (*map.stack)(0));
      const bool listed = next < found->size() && (*found)[next] == offset;
      ASSERT_EQ(listed, same) << name << " " << offset;
      next += listed ? 1 : 0;
    }
    // An even share of the page's lines, roughly.
    EXPECT_NEAR(static_cast<double>(found->size()) * map.slices, 16384, 16384 * 0.2) << name;
  }
}

TEST(NeighbourMeans, cards_whose_slices_the_description_does_not_tell_are_refused_by_reason) {
  gpu::Device card = gpu::find_device("gtx1080").value();
  card.address_map->module.rows.clear();
  card.address_map->stack.reset();
  EXPECT_THAT(one_slice_lines(card).error().message, HasSubstr("does not say which slice"));
  card.address_map.reset();
  EXPECT_THAT(one_slice_lines(card).error().message, HasSubstr("no address map"));
  const auto remainders = one_slice_lines(gpu::find_device("a30").value());
  ASSERT_FALSE(remainders);
  EXPECT_EQ(remainders.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(remainders.error().message, HasSubstr("remainders of physical addresses"));
}

NeighbourMeans simulated(const std::string& name, bool color) {
  SimExecutorOptions options;
  options.device = name;
  const auto executor = make_sim_executor(options).value();
  return executor->neighbour_means(Mode{partition::Mode::mask, color}, 2).value();
}

TEST(NeighbourMeans, a_simulated_card_has_what_its_description_says) {
  const NeighbourMeans means = simulated("gtx1080", false);
  EXPECT_EQ(means.target, 61U);
  EXPECT_EQ(means.shared_bytes, 49152U);
  EXPECT_EQ(means.bytes, 32U << 20U);
  EXPECT_EQ(means.accesses, 1U << 17U);
  EXPECT_FALSE(means.slice_lines.empty());
  EXPECT_FALSE(means.lacking.contains(Need::one_slice));
  for (const Need need : {Need::host_memory, Need::copy_engines, Need::module_variables}) {
    EXPECT_THAT(means.lacking.at(need), HasSubstr("sim:gtx1080"));
  }
  const gpu::Device card = gpu::find_device("gtx1080").value();
  EXPECT_EQ(means.row_bytes, std::uint64_t{1} << card.memory_system->row_shift);
}

TEST(NeighbourMeans, under_colours_no_slice_is_known) {
  const NeighbourMeans means = simulated("gtx1080", true);
  EXPECT_TRUE(means.slice_lines.empty());
  EXPECT_THAT(means.lacking.at(Need::one_slice), HasSubstr("under colours"));
}

TEST(NeighbourMeans, a_device_without_a_description_has_the_least_that_every_card_has) {
  const auto executor = make_planted_executor(planted_model("h100").value(), 1);
  const NeighbourMeans means =
      executor->neighbour_means(Mode{partition::Mode::mask, false}, 2).value();
  EXPECT_EQ(means.target, 0U);
  EXPECT_EQ(means.shared_bytes, 48U * 1024);
  EXPECT_EQ(means.bytes, 256U << 20U);
  EXPECT_THAT(means.lacking.at(Need::one_slice), HasSubstr("planted:h100 has no description"));
  EXPECT_THAT(means.lacking.at(Need::host_memory), HasSubstr("planted:h100"));
}

}  // namespace
}  // namespace demarc::study
