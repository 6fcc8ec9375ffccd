// Which colours launches feel, on the stand-in: what is planted is found.
#include "demarc/cuda/launch_colors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

using Colors = std::vector<std::uint32_t>;

std::shared_ptr<ColoredPool> remainder_pool(std::uint32_t felt_paths, std::uint32_t colors) {
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  config.felt_paths = felt_paths;
  std::vector<ShareRequest> shares;
  for (std::uint32_t c = 0; c < colors; ++c) shares.push_back({std::uint64_t{1} << c, 0});
  const auto scheme = gpu::color_scheme(gpu::find_device("h200").value(), colors).value();
  return ColoredPool::create(test::fake_card(config).value(), scheme, std::uint64_t{24} << 20U,
                             shares)
      .value();
}

TEST(LaunchColors, TheSideOfTheFeltPathIsFound) {
  for (const std::uint32_t path : {1U, 4U}) {
    const auto pool = remainder_pool(1U << path, 2);
    const auto felt = measure_launches(*pool);
    ASSERT_TRUE(felt) << felt.error().message;
    EXPECT_THAT(felt->alone_us, DoubleNear(1000, 1));
    EXPECT_EQ(felt->beside_us.size(), 47U);
    EXPECT_EQ(std::count_if(felt->beside_us.begin(), felt->beside_us.end(),
                            [](double us) { return us > 1400; }),
              8);
    const Colors order = felt->most_felt_first();
    ASSERT_EQ(order.size(), 2U);
    EXPECT_GT(felt->of_color[order[0]], felt->of_color[order[1]] * 1.1);
    EXPECT_THAT(felt->account(), HasSubstr(fmt::format("launches feel colour {} most", order[0])));
    // The path lies on one side: nothing in the other colour is felt.
    EXPECT_THAT(felt->of_color[order[1]], DoubleNear(1000, 1));
  }
  const auto first = measure_launches(*remainder_pool(1U << 1U, 2))->most_felt_first();
  const auto other = measure_launches(*remainder_pool(1U << 4U, 2))->most_felt_first();
  EXPECT_NE(first, other) << "paths 1 and 4 lie on the two sides";
}

TEST(LaunchColors, WhereNothingIsFeltTheOrderStays) {
  const auto felt = measure_launches(*remainder_pool(0, 4)).value();
  EXPECT_THAT(felt.beside_us, Each(DoubleNear(1000, 1)));
  EXPECT_EQ(felt.most_felt_first(), (Colors{0, 1, 2, 3}));
  EXPECT_THAT(felt.account(), HasSubstr("launches feel all colours alike: 1000.0 us"));
}

TEST(LaunchColors, ColoursThatAreParitiesAreMeasuredWhole) {
  fake::FakeConfig config = fake::small_gpu();
  config.felt_paths = 0xff00;  // modules whose highest bit is set: one colour of the mask below
  const ShareRequest shares[] = {{1, 0}, {2, 0}};
  const auto card = test::fake_card(config).value();
  const auto pool =
      ColoredPool::create(card->gpu(), std::vector<std::uint64_t>{fake::planted_masks[3]},
                          std::uint64_t{16} << 20U, shares)
          .value();
  const auto felt = measure_launches(*pool).value();
  EXPECT_EQ(felt.beside_us.size(), 2U);
  EXPECT_GT(felt.of_color[felt.most_felt_first()[0]], 1400);
  EXPECT_THAT(felt.of_color[felt.most_felt_first()[1]], DoubleNear(1000, 1));
}

TEST(LaunchColors, MemoryInUseIsNotWrittenOver) {
  const auto pool = remainder_pool(0, 2);
  const auto buffer = pool->allocate(1, 1000).value();
  const auto felt = measure_launches(*pool);
  ASSERT_FALSE(felt);
  EXPECT_EQ(felt.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(felt.error().message, HasSubstr("share 1 is in use"));
}

TEST(LaunchColors, AreOrderedByWhatIsFeltAndElseByNumber) {
  const auto order = [](std::vector<double> of_color) {
    return LaunchFelt{3, {}, std::move(of_color)}.most_felt_first();
  };
  EXPECT_EQ(order({4, 5, 4.1, 6}), (Colors{3, 1, 0, 2}));
  EXPECT_EQ(order({5, 5.2}), (Colors{0, 1}));
  EXPECT_EQ(order({5, 5.3}), (Colors{1, 0}));
  EXPECT_EQ(order({}), Colors{});
}

}  // namespace
}  // namespace demarc::cuda
