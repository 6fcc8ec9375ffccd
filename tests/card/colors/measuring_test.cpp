// Which SMs measure, and what streams go over.
#include "colors/measuring.hpp"

#include <gtest/gtest.h>

#include "pools.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

TEST(Measuring, takes_twenty_four_sms_spread_over_the_card_or_all_that_it_has) {
  fake::FakeConfig config = fake::small_gpu();
  config.tpcs = 30;
  const auto sms = measuring_sms(*test::fake_gpu(config));
  ASSERT_EQ(sms.size(), 24U);
  EXPECT_EQ(std::vector(sms.begin(), sms.begin() + 3), test::sm_list({0, 2, 5}));
  EXPECT_EQ(sms.back(), gpu::SmIndex(57));
  config.tpcs = 2;
  EXPECT_EQ(measuring_sms(*test::fake_gpu(config)), test::sm_list({0, 1, 2, 3}));
}

TEST(Measuring, streams_go_over_whole_chunks_of_half_of_what_is_free) {
  constexpr ShareRequest shares[] = {{{0x1, 2}, 0}, {{0x2, 2}, 5 << 14}};
  const auto pool = test::pool_of_constants(test::fake_gpu(), {0, 0}, shares).value();
  constexpr std::uint64_t chunk = 16384;
  ASSERT_EQ(pool->colors().run_bytes(), chunk);
  EXPECT_EQ(whole_chunks(*pool, 1, 1 << 20)->bytes(), 2 * chunk) << "five are free";
  EXPECT_EQ(whole_chunks(*pool, 1, 100)->bytes(), 100U);
  const auto most = pool->allocate(1, 4 * chunk).value();
  EXPECT_EQ(whole_chunks(*pool, 1, 1 << 20)->bytes(), chunk) << "one, where no more is left";
  const auto all = pool->allocate(1, chunk).value();
  EXPECT_FALSE(whole_chunks(*pool, 1, 1 << 20));

  const auto buffer = pool->allocate(0, 3 * chunk + 1).value();
  const DevicePointer arena = pool->arena().address();
  std::vector<std::uint32_t> places;
  for (std::uint64_t at = 0; at < 4 * chunk; at += chunk) {
    places.push_back(static_cast<std::uint32_t>((buffer.address(at).raw() - arena) / chunk));
  }
  EXPECT_EQ(chunks_of(buffer, 1 << 20), places);
  places.resize(2);
  EXPECT_EQ(chunks_of(buffer, 2 * chunk), places);
  EXPECT_EQ(chunks_of(buffer, chunk + 1), places);
}

}  // namespace
}  // namespace demarc::cuda
