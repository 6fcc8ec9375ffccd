// Where launches are felt least, on the stand-in: what is planted is found.
#include "demarc/card/launch_place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using gpu::TpcSet;
using testing::DoubleNear;
using testing::Each;
using testing::HasSubstr;

constexpr double alone_us = 1000;  // of a launch on the stand-in; 1500 where it feels traffic

class LaunchPlaces : public testing::Test {
 protected:
  void open(std::uint32_t felt_paths, bool by_side, std::uint32_t colors) {
    fake::FakeConfig config = fake::small_gpu();
    config.remainders = true;
    config.felt_paths = felt_paths;
    config.streams_feel_sides = by_side;
    card = test::fake_card(config).value();
    std::vector<ShareRequest> shares;
    for (std::uint32_t c = 0; c < colors; ++c)
      shares.push_back({color::ColorSet::run(c, 1, colors), 0});
    const auto scheme = color::color_scheme(gpu::find_device("h200").value(), colors).value();
    pool = ColoredPool::create(card, scheme, std::uint64_t{24} << 20U, shares).value();
    for (int i = 0; i < 2; ++i) streams.push_back(Stream::create(card->gpu()).value());
  }
  Result<LaunchTimes> times() {
    std::vector<const Stream*> pointers;
    for (const Stream& stream : streams) pointers.push_back(&stream);
    return time_launches(card, *pool, pointers, TpcSet{0, 1, 2});
  }
  CardPointer card;
  std::shared_ptr<ColoredPool> pool;
  std::vector<Stream> streams;
};

TEST_F(LaunchPlaces, a_stream_is_chosen_by_the_side_that_it_feels) {
  open(0, true, 2);
  const auto found = times();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->alone, Each(DoubleNear(alone_us, 1)));
  for (const std::uint32_t own : {0U, 1U}) {
    const LaunchPlace place = found->quietest(own);
    EXPECT_EQ(place.share, own);
    EXPECT_THAT(found->beside_others(place), DoubleNear(alone_us, 1));
    EXPECT_THAT(found->beside_others({1 - place.stream, own}), DoubleNear(1.5 * alone_us, 1));
  }
  EXPECT_NE(found->quietest(0).stream, found->quietest(1).stream);
}

TEST_F(LaunchPlaces, a_colour_is_chosen_by_the_path_that_all_feel) {
  open(1U << 1U, false, 2);  // on the side of the remainders below 24
  const auto found = times();
  ASSERT_TRUE(found) << found.error().message;
  const LaunchPlace place = found->quietest();
  EXPECT_THAT(found->beside_others(place), DoubleNear(alone_us, 1));
  EXPECT_THAT(found->beside_others({0, 1 - place.share}), DoubleNear(1.5 * alone_us, 1));
  streams.clear();
  open(1U << 4U, false, 2);  // on the other one
  EXPECT_EQ(times()->quietest().share, 1 - place.share);
}

TEST_F(LaunchPlaces, a_part_that_is_the_whole_card_has_its_traffic_everywhere) {
  open(0, true, 2);
  std::vector<const Stream*> pointers{&streams[0], &streams[1]};
  const auto found = time_launches(card, *pool, pointers, TpcSet::first(12));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_NE(found->quietest(0).stream, found->quietest(1).stream);
}

TEST_F(LaunchPlaces, memory_is_given_back_and_where_none_is_left_it_is_said) {
  open(0, false, 4);
  const std::uint64_t free = pool->usage(2).largest_free_bytes;
  const auto before = pool->allocate(1, 1000).value();
  const auto found = times();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->quietest().share, 0U);
  EXPECT_EQ(pool->usage(2).largest_free_bytes, free);
  EXPECT_EQ(pool->usage(2).used_bytes, 0U);
  const auto all = pool->allocate(2, free).value();
  const auto full = times();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, ErrorKind::missing_capability) << full.error().message;
}

TEST_F(LaunchPlaces, traffic_that_did_not_run_disturbs_nobody_and_is_not_believed) {
  open(0, false, 2);
  fake::FakeConfig shy = fake::small_gpu();
  shy.remainders = true;
  shy.client = 0b111;  // launches reach three TPCs
  shy.client_hidden = true;
  test::configure(shy);
  const auto found = times();
  test::configure(fake::small_gpu());
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("did not run on SM"));
}

TEST(LaunchTimes, the_quietest_place_is_that_of_the_least_time_beside_the_others) {
  const LaunchTimes times{{1, 1}, {{2, 3, 4}, {5, 1.3, 3.9}}};
  EXPECT_DOUBLE_EQ(times.beside_others({0, 0}), 3.5);
  EXPECT_EQ(times.quietest().stream, 0U);
  EXPECT_EQ(times.quietest().share, 2U);
  EXPECT_EQ(times.quietest(0).stream, 1U);
  EXPECT_EQ(times.quietest(1).stream, 0U);
  const LaunchTimes alike{{1, 1}, {{2, 1.99}, {1.985, 2}}};
  EXPECT_EQ(alike.quietest().stream, 0U) << "a hundredth is no difference";
  EXPECT_EQ(alike.quietest().share, 0U);
  const LaunchTimes one{{1.5}, {{4}}};
  EXPECT_DOUBLE_EQ(one.beside_others(one.quietest()), 1.5) << "there are no others";
}

}  // namespace
}  // namespace demarc::cuda
