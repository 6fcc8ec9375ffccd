// Pieces of a card's memory under one range, for it and for a peer.
#include "demarc/driver/mapped_pieces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t one_mebibyte = 1U << 20U;

std::int64_t live_objects() {
  return test::fake_symbol<std::int64_t()>("fake_live_objects")();
}

// Two cards of the stand-in.
class MappedPiecesOfTwo : public testing::Test {
 protected:
  void SetUp() override { ::setenv("DEMARC_FAKE_DEVICES", "2", 1); }
  void TearDown() override { ::unsetenv("DEMARC_FAKE_DEVICES"); }
  static GpuPointer card(std::uint32_t index) {
    return Gpu::open(test::fake_driver(), index).value();
  }
};

TEST(MappedPieces, lie_side_by_side_and_go_with_the_object) {
  const GpuPointer gpu = test::fake_gpu();
  const std::int64_t before = live_objects();
  {
    const auto mapped = MappedPieces::create(gpu, gpu, 2 * one_mebibyte, 3);
    ASSERT_TRUE(mapped) << mapped.error().message;
    EXPECT_EQ(mapped->bytes(), 6 * one_mebibyte);
    EXPECT_EQ(mapped->address() % (2 * one_mebibyte), 0U);
    EXPECT_EQ(gpu->api().cuMemsetD8_v2(mapped->address(), 1, 6 * one_mebibyte), cu_success);
    EXPECT_NE(gpu->api().cuMemsetD8_v2(mapped->address(), 1, 6 * one_mebibyte + 1), cu_success);
    EXPECT_EQ(live_objects(), before + 7) << "three pieces, their mappings, a range";
  }
  EXPECT_EQ(live_objects(), before);
}

TEST(MappedPieces, of_a_size_that_the_driver_does_not_map_are_refused) {
  const GpuPointer gpu = test::fake_gpu();
  const auto small = MappedPieces::create(gpu, gpu, 65536, 8);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(small.error().message,
            "Fake GPU: the driver maps no pieces of 64 KiB, but multiples of 2048 KiB");
  for (const auto& [bytes, count] : {std::pair{0U, 1U}, {2U << 20U, 0U}}) {
    const auto none = MappedPieces::create(gpu, gpu, bytes, count);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(none.error().message, HasSubstr("this maps nothing"));
  }
}

TEST_F(MappedPiecesOfTwo, of_both_lie_under_one_range_that_both_reach) {
  test::configure(fake::small_gpu());
  const std::vector<GpuPointer> cards{card(0), card(1)};
  const std::vector<std::uint32_t> owners{1, 0, 1};
  const auto mapped = MappedPieces::create(cards, owners, 2 * one_mebibyte);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(mapped->bytes(), 6 * one_mebibyte);
  const auto third =
      MappedPieces::create(cards, std::vector<std::uint32_t>{0, 2}, 2 * one_mebibyte);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().message, "a piece of card 2 of 2: cards are numbered from 0");
}

TEST_F(MappedPiecesOfTwo, of_a_peer_are_mapped_where_cards_reach_each_other) {
  test::configure(fake::small_gpu());
  const GpuPointer own = card(0);
  const GpuPointer peer = card(1);
  EXPECT_TRUE(check_reach(*own, *peer));
  EXPECT_TRUE(check_reach(*own, *own));
  EXPECT_TRUE(MappedPieces::create(own, peer, 2 * one_mebibyte, 1));
}

TEST_F(MappedPiecesOfTwo, of_a_peer_out_of_reach_are_refused_by_name) {
  fake::FakeConfig config = fake::small_gpu();
  config.peer_access = false;
  test::configure(config);
  const auto mapped = MappedPieces::create(card(0), card(1), 2 * one_mebibyte, 1);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(mapped.error().message,
            "Fake GPU (cuda:0) does not reach the memory of Fake GPU (cuda:1): the driver gives no "
            "peer access");
}

TEST_F(MappedPiecesOfTwo, take_atomics_where_the_link_carries_them) {
  test::configure(fake::small_gpu());
  EXPECT_TRUE(check_atomics(*card(0), *card(1)));
  fake::FakeConfig config = fake::small_gpu();
  config.peer_atomics = false;
  test::configure(config);
  EXPECT_TRUE(check_atomics(*card(0), *card(0)));
  const auto carried = check_atomics(*card(0), *card(1));
  ASSERT_FALSE(carried);
  EXPECT_EQ(carried.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(carried.error().message,
            "the link between Fake GPU (cuda:0) and Fake GPU (cuda:1) carries no atomics");
}

TEST_F(MappedPiecesOfTwo, of_a_peer_need_a_driver_that_tells_of_reach) {
  test::configure(fake::small_gpu());
  DriverApi api = test::fake_driver()->api();
  api.cuDeviceCanAccessPeer = nullptr;
  api.cuDeviceGetP2PAttribute = nullptr;
  const auto driver = Driver::from_table(api, "old driver").value();
  const GpuPointer own = Gpu::open(driver, 0).value();
  const GpuPointer peer = Gpu::open(driver, 1).value();
  EXPECT_EQ(check_atomics(*own, *peer).error().message,
            "old driver: the driver does not say whether links carry atomics");
  const auto reach = check_reach(*own, *peer);
  ASSERT_FALSE(reach);
  EXPECT_EQ(reach.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(reach.error().message,
            "old driver: the driver does not say whether cards reach each other");
}

}  // namespace
}  // namespace demarc::cuda
