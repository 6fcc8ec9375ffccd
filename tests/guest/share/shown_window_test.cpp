// The window of a lent share with the share's own bytes at its addresses, for code that knows
// nothing of colours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "lent_pools.hpp"
#include "paths.hpp"

namespace demarc::cuda {
namespace {

using color::Extent;
using color::LinearByte;
using test::objects_alive;
using test::page_of_share;
using testing::HasSubstr;

// The stand-in's memory lies at addresses of this process.
unsigned char* at(std::uint64_t address) {
  return reinterpret_cast<unsigned char*>(address);  // NOLINT: device addresses are integers
}

// Whether the kernel can read there.
bool is_mapped(std::uint64_t address) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe(ends), 0);
  const bool read = ::write(ends[1], at(address), 1) == 1;
  for (const int end : ends) ::close(end);
  return read;
}

// Pages by their constants, and the mappings that a page of the window takes.
struct PagesOfArena {
  std::vector<std::uint32_t> constants;
  std::uint64_t pieces;
};

// A share of four pages, two of its own linear bytes, beside another's of as many.
class ShownWindows : public testing::TestWithParam<PagesOfArena> {
 protected:
  Result<BorrowedShare> opened() {
    return BorrowedShare::open(pool->arena().gpu(), pool->lend(1).value(), {},
                               test::pages_of_pool(*pool));
  }
  // With all that there is mapped and shown.
  BorrowedShare shown() {
    auto share = opened().value();
    EXPECT_TRUE(share.prepare_showing());
    EXPECT_TRUE(share.map(whole));
    const auto done = share.show(whole);
    EXPECT_TRUE(done) << done.error().message;
    return share;
  }
  static void plant(const std::function<void(fake::FakeConfig&)>& change) {
    fake::FakeConfig config = fake::small_gpu();
    change(config);
    test::configure(config);
  }

  std::shared_ptr<ColoredPool> pool = test::lent_parities(GetParam().constants);
  std::uint64_t pieces = GetParam().pieces;
  Extent whole{{}, 2 * page_of_share};
};

TEST_P(ShownWindows, hold_the_share_s_bytes_each_at_its_own_number) {
  std::vector<unsigned char> content(whole.bytes);
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<unsigned char>(i * 31 + i / 4096);
  }
  {
    const ColoredBuffer own = pool->allocate(1, whole.bytes).value();
    ASSERT_TRUE(own.upload(content.data(), content.size()));
  }
  const BorrowedShare share = shown();
  EXPECT_EQ(std::memcmp(at(share.window().raw()), content.data(), content.size()), 0);
}

TEST_P(ShownWindows, reach_no_byte_of_another_s_share) {
  const ColoredBuffer other = pool->allocate(0, whole.bytes).value();
  const std::vector<unsigned char> pattern(whole.bytes, 0x5a);
  ASSERT_TRUE(other.upload(pattern.data(), pattern.size()));
  const BorrowedShare share = shown();
  std::memset(at(share.window().raw()), 0xff, whole.bytes);
  std::vector<unsigned char> seen(whole.bytes);
  ASSERT_TRUE(other.download(seen.data(), seen.size()));
  EXPECT_TRUE(seen == pattern);
  const ColoredBuffer own = pool->allocate(1, whole.bytes).value();
  ASSERT_TRUE(own.download(seen.data(), seen.size()));
  EXPECT_TRUE(seen == std::vector<unsigned char>(whole.bytes, 0xff));
}

TEST_P(ShownWindows, lie_in_the_share_s_colour_by_what_the_card_does) {
  const auto module_of = test::fake_symbol<std::uint64_t(std::uint64_t)>("fake_module_of");
  const LentShare lent = pool->lend(1).value();
  const BorrowedShare share = shown();
  for (std::uint64_t byte = 0; byte < whole.bytes; byte += gpu::smallest_page_bytes) {
    const auto position = lent.law->position(LinearByte(byte), {});
    EXPECT_EQ(module_of(share.window().raw() + byte),
              module_of(share.arena().raw() + position.raw()))
        << byte;
  }
}

// Memory of cards whose colours change every 4 KiB, by the tables of Fractional GPUs: a module that
// one colour reaches serves no other.
TEST(ShownWindowsOfOtherCards, lie_in_modules_that_no_other_colour_reaches) {
  const auto module_of = test::fake_symbol<std::uint64_t(std::uint64_t)>("fake_module_of");
  for (const char* card : {"gtx1080", "v100"}) {
    const auto masks = test::page_masks(card);
    const std::uint32_t colors = 1U << masks.size();
    std::vector<ShareRequest> requests;
    for (std::uint32_t color = 0; color < colors; ++color) {
      requests.push_back({color::ColorSet::run(color, 1, colors), 0});
    }
    const auto pool = test::parity_pool(std::uint64_t{128} << 20U, requests, masks,
                                        test::with_memory_of(card), Lending::by_descriptor);
    ASSERT_TRUE(pool) << pool.error().message;
    const Extent first_page{{}, page_of_share};
    std::vector<std::set<std::uint64_t>> modules(colors);
    for (std::uint32_t color = 0; color < colors; ++color) {
      auto share = BorrowedShare::open((*pool)->arena().gpu(), (*pool)->lend(color).value(), {},
                                       test::pages_of_pool(**pool))
                       .value();
      ASSERT_TRUE(share.prepare_showing());
      ASSERT_TRUE(share.map(first_page));
      const auto done = share.show(first_page);
      ASSERT_TRUE(done) << done.error().message;
      for (std::uint64_t byte = 0; byte < page_of_share; byte += 1024) {
        modules[color].insert(module_of(share.window().raw() + byte));
      }
    }
    std::set<std::uint64_t> all;
    std::size_t reached = 0;
    for (const auto& of_color : modules) {
      all.insert(of_color.begin(), of_color.end());
      reached += of_color.size();
    }
    EXPECT_EQ(reached, all.size()) << card;
    EXPECT_EQ(all.size(), std::size_t{1} << test::module_masks_in_page(card).size()) << card;
  }
}

TEST_P(ShownWindows, end_where_what_was_shown_ends) {
  auto share = opened().value();
  ASSERT_TRUE(share.prepare_showing());
  ASSERT_TRUE(share.map(whole));
  ASSERT_TRUE(share.show({{}, page_of_share}));
  EXPECT_TRUE(is_mapped(share.window().raw() + page_of_share - 1));
  EXPECT_FALSE(is_mapped(share.window().raw() + page_of_share));
  EXPECT_EQ(share.pieces(), pieces);
  ASSERT_TRUE(share.show(whole));
  EXPECT_TRUE(is_mapped(share.window().raw() + page_of_share));
  EXPECT_EQ(share.pieces(), 2 * pieces) << "what is shown already is not shown anew";
  share.hide({LinearByte(page_of_share), page_of_share});
  EXPECT_FALSE(is_mapped(share.window().raw() + page_of_share));
  EXPECT_TRUE(is_mapped(share.window().raw()));
  EXPECT_EQ(share.pieces(), pieces);
  share.hide(whole);
  EXPECT_FALSE(is_mapped(share.window().raw()));
  EXPECT_EQ(share.pieces(), 0U);
  ASSERT_TRUE(share.show(whole)) << "again";
  EXPECT_EQ(share.pieces(), 2 * pieces);
}

TEST_P(ShownWindows, leave_nothing_behind) {
  const std::int64_t before = objects_alive();
  { const BorrowedShare share = shown(); }
  EXPECT_EQ(objects_alive(), before);
}

// Then the process reaches no byte of another's by whatever address.
TEST_P(ShownWindows, stay_where_the_arena_s_pages_are_left) {
  BorrowedShare share = shown();
  std::memset(at(share.window().raw()), 0x77, whole.bytes);
  EXPECT_TRUE(is_mapped(share.arena().raw()));
  ASSERT_TRUE(share.leave_arena({{}, page_of_share}));
  EXPECT_FALSE(is_mapped(share.arena().raw()));
  EXPECT_FALSE(is_mapped(share.arena().raw() + 2 * page_of_share - 1));
  EXPECT_TRUE(is_mapped(share.arena().raw() + 2 * page_of_share)) << "of the other linear page";
  ASSERT_TRUE(share.leave_arena(whole));
  EXPECT_FALSE(is_mapped(share.arena().raw() + 2 * page_of_share));
  for (std::uint64_t byte = 0; byte < whole.bytes; byte += gpu::smallest_page_bytes) {
    EXPECT_EQ(*at(share.window().raw() + byte), 0x77);
  }
  share.hide(whole);
  ASSERT_TRUE(share.map(whole)) << "again";
  ASSERT_TRUE(share.show(whole));
  EXPECT_EQ(*at(share.window().raw() + whole.bytes - 1), 0x77);
}

TEST_P(ShownWindows, are_refused_where_the_machine_has_no_more_mappings) {
  plant([](fake::FakeConfig& config) {
    config.max_pieces = static_cast<std::uint32_t>(GetParam().pieces + 20);
  });
  auto share = opened().value();
  ASSERT_TRUE(share.prepare_showing());
  ASSERT_TRUE(share.map(whole));
  const auto refused = share.show(whole);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("has no more mappings: 524288 are all"));
  EXPECT_FALSE(is_mapped(share.window().raw())) << "nothing is half shown";
  EXPECT_EQ(share.pieces(), 0U);
}

TEST_P(ShownWindows, are_refused_where_the_driver_maps_otherwise_than_is_known) {
  plant([](fake::FakeConfig& config) { config.map_calls = 2; });
  auto share = opened().value();
  ASSERT_TRUE(share.prepare_showing());
  const auto refused = share.map(whole);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the driver mapped memory by 2 calls of the kernel module, not by one");
}

TEST_P(ShownWindows, are_prepared_before_pages_are_mapped) {
  auto share = opened().value();
  EXPECT_FALSE(share.show(whole)) << "not prepared";
  ASSERT_TRUE(share.map({{}, 1}));
  const auto late = share.prepare_showing();
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("are mapped already"));
}

TEST_P(ShownWindows, show_whole_pages_that_are_mapped) {
  auto share = opened().value();
  ASSERT_TRUE(share.prepare_showing());
  ASSERT_TRUE(share.map({{}, 1}));
  const auto part = share.show({{}, page_of_share / 2});
  ASSERT_FALSE(part);
  EXPECT_THAT(part.error().message, HasSubstr("are no whole pages of 2097152 bytes"));
  EXPECT_FALSE(share.show({LinearByte(page_of_share / 2), page_of_share}));
  const auto unmapped = share.show(whole);
  ASSERT_FALSE(unmapped);
  EXPECT_THAT(unmapped.error().message, HasSubstr("are to be shown that are not mapped"));
}

TEST(ShownWindowsOfRemainders, are_refused_with_the_reason) {
  const auto& pool = test::lent_remainders();
  const auto table = pool->colors().table();
  auto share = BorrowedShare::open(pool->arena().gpu(), pool->lend(1).value(),
                                   {table.begin(), table.end()}, test::pages_of_pool(*pool));
  ASSERT_TRUE(share) << share.error().message;
  const auto refused = share->prepare_showing();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("slices change every 256 bytes"));
}

INSTANTIATE_TEST_SUITE_P(OfOneConstantAndOfBoth, ShownWindows,
                         testing::Values(PagesOfArena{{0, 0, 0, 0}, 124},
                                         PagesOfArena{{0, 1, 1, 0}, 63}));

}  // namespace
}  // namespace demarc::cuda
