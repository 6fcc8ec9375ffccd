// Pools of coloured memory on the stand-in, whose pages have planted constants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "demarc/card/colored_memory.hpp"
#include "pools.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t two_mebibytes = 2 << 20;

std::shared_ptr<ColoredPool> pool_of(std::uint64_t pages,
                                     std::span<const ShareRequest> shares = test::both_halves,
                                     std::span<const std::uint64_t> masks = test::half_mask,
                                     Lending lending = Lending::none) {
  const auto pool =
      test::parity_pool(pages * two_mebibytes, shares, masks, fake::small_gpu(), lending);
  EXPECT_TRUE(pool) << pool.error().message;
  return *pool;
}

// The truth of the stand-in agrees with what the pool believes when every chunk is where it should.
// So are the bytes that are copied there.
class ColoredPools : public testing::TestWithParam<std::tuple<Lending, std::uint64_t>> {};

TEST_P(ColoredPools, have_every_chunk_of_a_buffer_in_its_colour_by_timing) {
  const auto [lending, two] = GetParam();
  const std::uint64_t quarters[] = {0xc4000, 0x18a000};
  const std::uint64_t rest = 0xfU & ~two;
  const ShareRequest shares[] = {
      {{two, 4}, 0}, {{rest & (rest - 1), 4}, 0}, {{rest & ~(rest - 1), 4}, 0}};
  const auto pool = pool_of(24, shares, quarters, lending);
  if (lending == Lending::by_descriptor) {
    EXPECT_EQ(pool->arena().pages() % 4, 0U);
    EXPECT_THAT(pool->colors().account(), HasSubstr("in groups of 4 constants"));
  }
  for (std::size_t share = 0; share < 3; ++share) {
    {
      const auto copied = pool->allocate(share, 300001).value();
      std::vector<char> bytes(copied.bytes());
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<char>(i * 31 + i / 4099);
      ASSERT_TRUE(copied.upload(bytes.data(), bytes.size()));
      for (const std::uint64_t at : {0U, 16384U, 299999U}) {
        char found = 0;
        ASSERT_TRUE(copied.download(&found, 1, at));
        EXPECT_EQ(found, bytes[at]) << at;
        ASSERT_EQ(pool->arena().gpu()->api().cuMemcpyDtoH_v2(&found, copied.address(at).raw(), 1),
                  0);
        EXPECT_EQ(found, bytes[at]) << at;
      }
      std::vector<char> seen(bytes.size());
      ASSERT_TRUE(copied.download(seen.data(), seen.size()));
      EXPECT_TRUE(seen == bytes);
    }
    const auto before = pool->allocate(share, 300000).value();
    const auto buffer = pool->allocate(share, 1200000).value();
    ASSERT_NE(buffer.first(), color::LinearByte());
    const auto audit = buffer.audit();
    ASSERT_TRUE(audit) << audit.error().message;
    EXPECT_TRUE(audit->holds());
    const std::uint64_t first = buffer.first().raw();
    const std::uint64_t last = first + 1200000 - 1;
    EXPECT_EQ(audit->chunks(), last / audit->chunk_bytes - first / audit->chunk_bytes + 1);
    EXPECT_EQ(audit->unclear, 0U);
    for (std::uint32_t color = 0; color < 4; ++color) {
      EXPECT_EQ(audit->chunks_of_color[color] != 0, shares[share].colors.contains(color))
          << "share " << share << " colour " << color;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfFourColours, ColoredPools,
                         testing::Combine(testing::Values(Lending::none, Lending::by_descriptor),
                                          testing::Values(0x3U, 0x5U, 0x6U)));

TEST(ColoredPool, an_audit_notices_pages_of_another_colour) {
  const auto pool = pool_of(16);
  const auto buffer = pool->allocate(0, 4 << 20).value();
  fake::FakeConfig moved = fake::small_gpu();
  moved.page_seed = 99;  // as if the pages lay elsewhere than the pool believes
  test::configure(moved);
  const auto audit = buffer.audit();
  ASSERT_TRUE(audit) << audit.error().message;
  EXPECT_FALSE(audit->holds());
  EXPECT_GT(audit->outside, audit->chunks() / 10);
}

TEST(ColorAudit, holds_with_one_chunk_of_a_hundred_unclear_and_none_outside) {
  ColorAudit audit;
  audit.chunks_of_color = {99, 0};
  audit.unclear = 1;
  EXPECT_TRUE(audit.holds());
  EXPECT_EQ(audit.chunks(), 100U);
  audit.chunks_of_color = {98, 0};
  EXPECT_FALSE(audit.holds());
  audit.unclear = 0;
  audit.outside = 1;
  EXPECT_FALSE(audit.holds());
}

TEST(ColoredPool, chunks_in_doubt_are_counted_and_no_colour_of_theirs_is_believed) {
  const auto pool = pool_of(16);
  const auto buffer = pool->allocate(0, 4 << 20).value();
  fake::FakeConfig busy = fake::small_gpu();
  busy.latency_noise = 60;  // as beside another program
  test::configure(busy);
  const auto audit = buffer.audit();
  ASSERT_TRUE(audit) << audit.error().message;
  EXPECT_GT(audit->unclear, audit->chunks() / 2);
  EXPECT_EQ(audit->chunks(), (4U << 20U) / audit->chunk_bytes);
  EXPECT_FALSE(audit->holds());
}

TEST(ColoredPool, pages_whose_constants_are_not_certain_are_refused) {
  fake::FakeConfig busy = fake::small_gpu();
  busy.upset_from = 4;  // the first page has been measured, by three launches
  busy.upset_until = 1000;
  busy.upset_noise = 60;
  const auto pool = test::parity_pool(16 * two_mebibytes, test::both_halves, test::half_mask, busy);
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(pool.error().message, HasSubstr("of 16 pages are not certain"));
}

TEST(ColoredPool, a_pool_of_given_constants_is_not_audited_and_one_of_too_few_is_refused) {
  const GpuPointer gpu = test::fake_gpu();
  const auto coloring = color::Coloring::make(test::half_mask, two_mebibytes).value();
  auto arena = PageArena::create(gpu, 3).value();
  EXPECT_THAT(given_parities(arena, coloring, std::vector<std::uint32_t>(4, 0)).error().message,
              HasSubstr("4 page constants were given for an arena of 3 pages"));
  const auto pool = test::pool_of_constants(gpu, {0, 0, 0, 0}).value();
  EXPECT_EQ(pool->colors().account(), "4 pages measured, 4 kept, of one constant");
  EXPECT_EQ(pool->allocate(0, 1000)->audit().error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(pool->allocate(2, 1000).error().message, HasSubstr("share 2: the pool has 2"));
  const auto whole = pool->allocate(0, 5 * two_mebibytes);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(whole.error().message, HasSubstr("the largest free run of this share is 4194304"));
}

TEST(ColoredPool, buffers_of_all_shares_are_disjoint_and_keep_what_is_written) {
  const auto pool = pool_of(8);
  std::set<DevicePointer> lines;
  std::vector<ColoredBuffer> buffers;
  for (int i = 0; i < 6; ++i) {
    buffers.push_back(pool->allocate(static_cast<std::size_t>(i % 2), 700001).value());
    const ColoredBuffer& buffer = buffers.back();
    for (std::uint64_t at = 0; at < buffer.bytes(); at += 256) {
      EXPECT_TRUE(lines.insert(buffer.address(at).raw()).second)
          << "byte " << at << " is taken twice";
    }
    const std::vector<unsigned char> pattern(buffer.bytes(), static_cast<unsigned char>(i + 1));
    ASSERT_TRUE(buffer.upload(pattern.data(), pattern.size()));
  }
  for (int i = 0; i < 6; ++i) {
    std::vector<unsigned char> back(700001);
    ASSERT_TRUE(buffers[static_cast<std::size_t>(i)].download(back.data(), back.size()));
    EXPECT_EQ(std::set<unsigned char>(back.begin(), back.end()),
              std::set<unsigned char>{static_cast<unsigned char>(i + 1)});
  }
}

TEST(ColoredPool, copies_of_parts_keep_every_byte_and_go_in_few_pieces) {
  const auto pool = pool_of(8);
  const auto buffer = pool->allocate(1, 3000003).value();
  std::vector<std::uint8_t> data(buffer.bytes());
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13U);
  }
  const auto before = test::fake_symbol<std::uint64_t()>("fake_copy_count")();
  ASSERT_TRUE(buffer.upload(data.data(), data.size()));
  const auto copies = test::fake_symbol<std::uint64_t()>("fake_copy_count")() - before;
  EXPECT_LE(copies, data.size() / buffer.run_bytes() / 4) << "a copy a run";
  for (const auto& [offset, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 1}, {16383, 2}, {16384, 16384}, {100, 2999000}, {2999999, 4}}) {
    std::vector<std::uint8_t> part(bytes);
    ASSERT_TRUE(buffer.download(part.data(), bytes, offset));
    EXPECT_TRUE(
        std::equal(part.begin(), part.end(), data.begin() + static_cast<std::ptrdiff_t>(offset)))
        << bytes << " bytes at " << offset;
  }
  EXPECT_EQ(buffer.upload(data.data(), 2, buffer.bytes() - 1).error().kind,
            ErrorKind::invalid_input);
  EXPECT_EQ(buffer.download(data.data(), 2, buffer.bytes() - 1).error().kind,
            ErrorKind::invalid_input);
  EXPECT_FALSE(buffer.download(data.data(), 0, buffer.bytes() + 1));
}

// Neighbours before, behind, on both sides and on none.
TEST(ColoredPool, bytes_that_are_given_back_join_their_free_neighbours) {
  const auto pool = pool_of(4);
  const std::uint64_t whole = pool->usage(0).largest_free_bytes;
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}}) {
    std::vector<std::optional<ColoredBuffer>> buffers;
    for (int i = 0; i < 3; ++i) buffers.emplace_back(pool->allocate(0, 100000).value());
    const color::LinearByte first = buffers[0]->first();
    EXPECT_EQ(buffers[1]->first(), first + 100096) << "rounded up to 256 bytes";
    for (const std::size_t buffer : order) buffers[buffer].reset();
    EXPECT_EQ(pool->usage(0).largest_free_bytes, whole);
    EXPECT_EQ(pool->usage(0).used_bytes + pool->usage(0).wasted_bytes, 0U);
    EXPECT_EQ(pool->allocate(0, 100)->first(), first);
  }
  const auto held = pool->allocate(0, 256).value();
  std::optional<ColoredBuffer> gap(pool->allocate(0, 256).value());
  const auto behind = pool->allocate(0, 256).value();
  const std::uint64_t left = pool->usage(0).largest_free_bytes;
  const color::LinearByte place = gap->first();
  gap.reset();
  EXPECT_EQ(pool->usage(0).largest_free_bytes, left) << "a gap between others";
  EXPECT_EQ(pool->allocate(0, 256)->first(), place) << "which is used again";
}

TEST(ColoredPool, a_cap_is_kept_and_freed_bytes_count_again) {
  constexpr ShareRequest capped[] = {{{0x1, 2}, 1 << 20}, {{0x2, 2}, 0}};
  const auto pool = pool_of(8, capped);
  EXPECT_EQ(pool->usage(0).capacity_bytes, 1U << 20U);
  {
    const auto first = pool->allocate(0, (1 << 20) - 1000).value();
    EXPECT_EQ(pool->usage(0).largest_free_bytes, 768U) << "rounded up to 256 bytes";
    const auto refused = pool->allocate(0, 1000);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("may use 1048576 bytes and uses 1047808"));
    EXPECT_TRUE(pool->allocate(1, 2 << 20)) << "the other share has no cap";
  }
  EXPECT_TRUE(pool->allocate(0, 1 << 20));
  const auto usage = pool->usage(0);
  EXPECT_EQ(usage.used_bytes + usage.wasted_bytes, 0U);
}

TEST(ColoredPool, usage_counts_what_was_asked_for_and_what_rounding_lost) {
  const auto pool = pool_of(4);
  const auto a = pool->allocate(0, 1000).value();
  const auto b = pool->allocate(0, 4096).value();
  EXPECT_EQ(pool->usage(0).used_bytes, 5096U);
  EXPECT_EQ(pool->usage(0).wasted_bytes, 24U);
  EXPECT_EQ(pool->usage(0).capacity_bytes + pool->usage(1).capacity_bytes,
            pool->arena().pages() * two_mebibytes);
}

TEST(ColoredPool, buffers_take_whole_multiples_of_256_bytes_and_at_least_one) {
  const auto pool = pool_of(1);
  const std::uint64_t whole = pool->usage(0).largest_free_bytes;
  const auto none = pool->allocate(0, 0).value();
  EXPECT_EQ(pool->usage(0).largest_free_bytes, whole - 256);
  const auto more = pool->allocate(0, 257).value();
  EXPECT_EQ(pool->usage(0).largest_free_bytes, whole - 768);
  EXPECT_EQ(more.first(), color::LinearByte(256));
  EXPECT_EQ(pool->usage(0).wasted_bytes, 256U + 255U);
  const auto rest = pool->allocate(0, whole - 768).value();
  EXPECT_EQ(pool->usage(0).largest_free_bytes, 0U);
  EXPECT_FALSE(pool->allocate(0, 1));
  EXPECT_EQ(none.layout<remainders>().table, 0U) << "its colours are parities";
}

// The last numbers are no multiples of 256, and rounded up they would be 0.
TEST(ColoredPool, more_bytes_than_any_share_has_are_refused_up_to_the_last_number) {
  constexpr ShareRequest capped[] = {{{0x1, 2}, 1 << 20}, {{0x2, 2}, 0}};
  const auto pool = pool_of(4, capped);
  for (const std::size_t share : {0U, 1U}) {
    const std::uint64_t whole = pool->usage(share).capacity_bytes;
    for (const std::uint64_t bytes : {whole + 1, ~std::uint64_t{0} - 255, ~std::uint64_t{0}}) {
      const auto refused = pool->allocate(share, bytes);
      ASSERT_FALSE(refused) << bytes;
      EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
      EXPECT_THAT(refused.error().message, HasSubstr(fmt::format("{} bytes of", bytes)));
    }
    EXPECT_EQ(pool->usage(share).used_bytes + pool->usage(share).wasted_bytes, 0U);
    EXPECT_TRUE(pool->allocate(share, whole));
  }
}

TEST(ColoredPool, a_share_of_all_colours_is_the_arena_as_it_lies) {
  constexpr ShareRequest whole[] = {{{0x3, 2}, 0}};
  const auto pool = pool_of(2, whole);
  static_cast<void>(pool->allocate(0, 512).value());
  const auto buffer = pool->allocate(0, 4096).value();
  const auto layout = buffer.layout<0>();
  EXPECT_EQ(layout.base, pool->arena().address());
  EXPECT_EQ(layout.first, buffer.first().raw());
  EXPECT_EQ(layout.first % 256, 0U);
}

TEST(ColoredPool, of_fewer_bytes_than_a_page_has_one_page) {
  const auto pool = test::parity_pool(1000);
  ASSERT_TRUE(pool) << pool.error().message;
  EXPECT_EQ((*pool)->arena().pages(), 1U);
  EXPECT_EQ((*pool)->usage(0).capacity_bytes, two_mebibytes / 2);
}

TEST(ColoredPool, runs_are_contiguous_and_as_long_as_said) {
  const auto pool = pool_of(4);
  const auto buffer = pool->allocate(0, 200000).value();
  for (std::uint64_t at = 0; at < buffer.bytes(); at += 777) {
    const std::uint64_t left = buffer.run_left(at);
    EXPECT_EQ(buffer.address(at + left - 1), buffer.address(at) + left - 1);
  }
}

TEST(ColoredPool, shares_that_overlap_and_partitions_without_colours_are_refused) {
  constexpr ShareRequest overlapping[] = {{{0x1, 2}, 0}, {{0x3, 2}, 0}};
  const auto pool = test::parity_pool(4 * two_mebibytes, overlapping);
  ASSERT_FALSE(pool);
  EXPECT_THAT(pool.error().message, HasSubstr("colours 0 of 2 are in two shares"));
}

TEST(ColoredPool, a_mask_the_card_does_not_show_is_refused) {
  const std::uint64_t wrong[] = {0x10000};
  const auto pool = test::parity_pool(4 * two_mebibytes, test::both_halves, wrong);
  ASSERT_FALSE(pool);
  EXPECT_THAT(pool.error().message, HasSubstr("is not a sum of"));
}

}  // namespace
}  // namespace demarc::cuda
