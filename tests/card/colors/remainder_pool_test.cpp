// Pools whose colours are remainders, on the stand-in with the memory of an H200.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "demarc/card/colored_memory.hpp"
#include "demarc/card/remainder_colors.hpp"
#include "demarc/card/verify_colors.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using Pool = std::shared_ptr<ColoredPool>;

constexpr std::uint64_t page_bytes = 2 << 20;
constexpr ShareRequest sides[] = {{{0x1, 2}, 0}, {{0x2, 2}, 0}};

fake::FakeConfig h200() {
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  return config;
}

color::ColorScheme scheme_of(std::uint32_t colors) {
  return color::color_scheme(gpu::find_device("h200").value(), colors).value();
}

Result<Pool> make_pool(std::uint64_t pages, std::uint32_t colors,
                       std::span<const ShareRequest> shares) {
  DEMARC_TRY(const auto card, test::fake_card(h200()));
  return ColoredPool::create(card, scheme_of(colors), pages * page_bytes, shares);
}

// Measured once for the tests that only read.
const Pool& pool_of_sides() {
  static const Pool pool = make_pool(12, 2, sides).value();
  test::configure(h200());
  return pool;
}

RC_GTEST_PROP(RemainderPool,
              every_address_lies_in_the_colours_of_its_share_and_device_code_finds_it, ()) {
  const Pool& pool = pool_of_sides();
  const auto share = *rc::gen::inRange<std::size_t>(0, 2);
  const auto bytes = *rc::gen::inRange<std::uint64_t>(1, 3 << 20);
  const auto pad = pool->allocate(share, *rc::gen::inRange<std::uint64_t>(1, 5000)).value();
  const auto buffer = pool->allocate(share, bytes).value();
  const auto at = *rc::gen::inRange<std::uint64_t>(0, bytes);
  const color::DeviceAddress address = buffer.address(at);
  const auto layout = buffer.layout<remainders>();
  RC_ASSERT(layout.address(at) == address.raw());
  RC_ASSERT(buffer.address(at + buffer.run_left(at) - 1) == address + buffer.run_left(at) - 1);
  // Bytes of the share are those of its colour in order (gpu: each has a remainder of its window).
  const color::LinearByte linear = buffer.first() + at;
  const auto color = static_cast<std::uint32_t>(share);
  RC_ASSERT(buffer.position(at) == pool->colors().remainders()->coloring.position(linear, color));
  RC_ASSERT(address.raw() - pool->arena().address() == buffer.position(at).raw());
  RC_ASSERT(linear.raw() < pool->usage(share).capacity_bytes);
}

// The stand-in's truth, seen through latencies only.
TEST(RemainderPool, every_chunk_of_a_buffer_has_its_colour_by_timing) {
  const Pool& pool = pool_of_sides();
  EXPECT_EQ(pool->colors().count(), 2U);
  EXPECT_EQ(pool->colors().run_bytes(), 256U);
  for (const std::size_t share : {0U, 1U}) {
    const auto before = pool->allocate(share, 1 << 20).value();
    const auto buffer = pool->allocate(share, (2 << 20) + 200000).value();
    ASSERT_NE(buffer.first(), color::LinearByte());
    const auto audit = buffer.audit();
    ASSERT_TRUE(audit) << audit.error().message;
    EXPECT_TRUE(audit->holds());
    EXPECT_EQ(audit->chunk_bytes, 2048U);
    EXPECT_EQ(audit->chunks(), 1122U) << "more than are measured in one go";
    EXPECT_GT(audit->chunks_of_color[share], 1110U);
    EXPECT_EQ(audit->chunks_of_color[1 - share], 0U);
  }
}

TEST(RemainderPool, thirds_have_colours_of_their_own_by_timing) {
  constexpr ShareRequest thirds[] = {{{0x1, 3}, 0}, {{0x2, 3}, 0}, {{0x4, 3}, 0}};
  const Pool pool = make_pool(12, 3, thirds).value();
  EXPECT_EQ(pool->colors().count(), 3U);
  std::uint64_t capacity = 0;
  for (std::size_t share = 0; share < 3; ++share) {
    const auto audit = pool->allocate(share, 1 << 20).value().audit();
    ASSERT_TRUE(audit) << audit.error().message;
    EXPECT_TRUE(audit->holds());
    EXPECT_EQ(audit->chunks_of_color[(share + 1) % 3] + audit->chunks_of_color[(share + 2) % 3],
              0U);
    capacity += pool->usage(share).capacity_bytes;
  }
  EXPECT_GT(capacity, 9 * page_bytes) << "of 11, nearly all are used";
}

TEST(RemainderPool, an_audit_notices_pages_of_other_remainders) {
  const Pool& pool = pool_of_sides();
  const auto buffer = pool->allocate(0, 1 << 20).value();
  fake::FakeConfig moved = h200();
  moved.page_seed = 2;  // every page one further
  test::configure(moved);
  const auto audit = buffer.audit();
  test::configure(h200());
  ASSERT_TRUE(audit) << audit.error().message;
  EXPECT_FALSE(audit->holds());
  EXPECT_GT(audit->outside, audit->chunks() / 4);
}

TEST(RemainderPool, chunks_in_doubt_are_counted_and_no_colour_of_theirs_is_believed) {
  const Pool& pool = pool_of_sides();
  const auto buffer = pool->allocate(0, 1 << 20).value();
  fake::FakeConfig busy = h200();
  busy.latency_noise = 60;
  test::configure(busy);
  const auto audit = buffer.audit();
  test::configure(h200());
  ASSERT_TRUE(audit) << audit.error().message;
  EXPECT_GT(audit->unclear, audit->chunks() / 2);
  EXPECT_EQ(audit->chunks(), 512U);
  EXPECT_FALSE(audit->holds());
}

TEST(RemainderPool, what_was_in_doubt_is_measured_again) {
  const Pool& pool = pool_of_sides();
  const auto buffer = pool->allocate(0, 1 << 20).value();
  fake::FakeConfig busy = h200();
  busy.upset_from = 1;
  busy.upset_until = 4;  // all chunks have been measured once, by three launches
  busy.upset_noise = 60;
  test::configure(busy);
  const auto audit = buffer.audit();
  test::configure(h200());
  ASSERT_TRUE(audit) << audit.error().message;
  EXPECT_TRUE(audit->holds());
  EXPECT_EQ(audit->unclear, 0U);
  EXPECT_EQ(audit->chunks(), 512U) << "none is counted twice";
}

TEST(RemainderPool, pages_that_do_not_follow_each_other_are_refused) {
  const auto card = test::fake_card(h200()).value();
  fake::FakeConfig busy = h200();
  busy.upset_from = 4;  // the first page has been measured, by three launches
  busy.upset_until = 1000;
  busy.upset_noise = 60;
  test::configure(busy);
  const auto pool = ColoredPool::create(card, scheme_of(2), 8 * page_bytes, sides);
  test::configure(h200());
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(pool.error().message, HasSubstr("of 8 pages follow each other in their remainders"));
}

// Each time takes three launches.
TEST(RemainderPool, a_model_that_is_disturbed_is_measured_four_times) {
  const auto card = test::fake_card(h200()).value();
  fake::FakeConfig busy = h200();
  busy.upset_from = 1;
  busy.upset_noise = 60;
  const auto measured = [&](std::uint64_t times_in_vain) {
    busy.upset_until = 1 + 3 * times_in_vain;
    test::configure(busy);
    const auto pool = ColoredPool::create(card, scheme_of(2), 8 * page_bytes, sides);
    return pool ? "" : pool.error().message;
  };
  EXPECT_EQ(measured(1), "");
  EXPECT_THAT(measured(4), HasSubstr("latencies of a page have 2 kinds"));
  test::configure(h200());
}

TEST(RemainderPool, without_the_l2_sides_nothing_is_coloured) {
  fake::FakeConfig config = h200();
  config.virtual_sms = true;  // in a client of MPS they are not looked at
  const auto card = test::fake_card(config).value();
  ASSERT_FALSE(card->topology().sides_known());
  const auto pool = ColoredPool::create(card, scheme_of(2), 4 * page_bytes, sides);
  test::configure(h200());
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(pool.error().message, HasSubstr("the side of each TPC is not known"));
}

TEST(RemainderWindows, are_of_colours_that_follow_each_other_and_exist) {
  const color::RemainderColoring& coloring = pool_of_sides()->colors().remainders()->coloring;
  const auto first = window_of_colors(coloring, {0x1, 2}).value();
  const auto second = window_of_colors(coloring, {0x2, 2}).value();
  EXPECT_EQ(first.count + second.count, 47U);
  EXPECT_EQ(second.first, (first.first + first.count) % 47);
  const auto both = window_of_colors(coloring, {0x3, 2}).value();
  EXPECT_EQ(both.first, first.first);
  EXPECT_EQ(both.count, 47U);
  for (const std::uint64_t wrong : {0x0U, 0x4U, 0x5U, 0x6U, 0x7U}) {
    EXPECT_FALSE(window_of_colors(coloring, {wrong, 2})) << wrong;
  }
}

TEST(RemainderPool, copies_of_parts_keep_every_byte_and_nothing_else) {
  const Pool& pool = pool_of_sides();
  const auto buffer = pool->allocate(1, 300003).value();
  const auto neighbour = pool->allocate(1, 5000).value();
  std::vector<std::uint8_t> data(buffer.bytes());
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13U);
  }
  const std::vector<std::uint8_t> ones(neighbour.bytes(), 1);
  ASSERT_TRUE(neighbour.upload(ones.data(), ones.size()));
  ASSERT_TRUE(buffer.upload(data.data(), data.size()));
  for (std::size_t i = 10001; i < 20000; ++i) data[i] ^= 0x5aU;
  ASSERT_TRUE(buffer.upload(data.data() + 10001, 9999, 10001));
  for (const auto& [offset, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 1}, {255, 2}, {256, 256}, {100, 299900}, {299999, 4}, {300003, 0}}) {
    std::vector<std::uint8_t> part(bytes);
    ASSERT_TRUE(buffer.download(part.data(), bytes, offset));
    EXPECT_TRUE(
        std::equal(part.begin(), part.end(), data.begin() + static_cast<std::ptrdiff_t>(offset)))
        << bytes << " bytes at " << offset;
  }
  std::vector<std::uint8_t> back(neighbour.bytes());
  ASSERT_TRUE(neighbour.download(back.data(), back.size()));
  EXPECT_EQ(back, ones);
  EXPECT_EQ(buffer.upload(data.data(), 2, buffer.bytes() - 1).error().kind,
            ErrorKind::invalid_input);
  EXPECT_EQ(buffer.download(data.data(), 2, buffer.bytes() - 1).error().kind,
            ErrorKind::invalid_input);
}

TEST(RemainderPool, usage_counts_what_was_asked_for_and_what_rounding_lost) {
  constexpr ShareRequest shares[] = {{{0x1, 2}, 1 << 20}, {{0x2, 2}, 0}};
  const Pool pool = make_pool(4, 2, shares).value();
  EXPECT_EQ(pool->usage(0).capacity_bytes, 1U << 20U) << "its cap";
  // The numbers of whole rounds of 47: 24 of the one side, 23 of the other. A page is kept aside.
  EXPECT_EQ(pool->usage(1).capacity_bytes, 3072U / 47 * 2048 * 23 - 2048 * 23);
  const auto a = pool->allocate(0, 1000).value();
  const auto b = pool->allocate(0, 4096).value();
  EXPECT_EQ(pool->usage(0).used_bytes, 5096U);
  EXPECT_EQ(pool->usage(0).wasted_bytes, 24U);
  EXPECT_THAT(pool->allocate(0, 1 << 20).error().message, HasSubstr("may use 1048576 bytes"));
}

TEST(RemainderPool, quarters_are_memory_stacks_and_two_of_a_side_make_the_side) {
  constexpr ShareRequest shares[] = {{{0x3, 4}, 0}, {{0x4, 4}, 0}, {{0x8, 4}, 0}};
  const Pool pool = make_pool(8, 4, shares).value();
  const std::uint64_t round = pool->usage(1).capacity_bytes / 7;
  EXPECT_EQ(pool->usage(0).capacity_bytes, 24 * round) << "with the stack between them";
  const auto buffer = pool->allocate(1, 100000).value();
  const auto audit = buffer.audit().value();
  EXPECT_TRUE(audit.holds());
  EXPECT_GT(audit.chunks_of_color[2], 45U);
  constexpr ShareRequest apart[] = {{{0x5, 4}, 0}};
  EXPECT_THAT(make_pool(8, 4, apart).error().message, HasSubstr("follow each other"));
}

// Tables of a half lie in its own colours: all of the patterns, and places from the first on. Those
// of fewer remainders find no room for the patterns, whose chunks are eight remainders apart.
TEST(RemainderPool, tables_lie_in_the_colours_of_their_share) {
  constexpr ShareRequest two_halves[] = {{{0x3, 4}, 0}, {{0xc, 4}, 0}};
  constexpr ShareRequest four_quarters[] = {
      {{0x1, 4}, 0}, {{0x2, 4}, 0}, {{0x4, 4}, 0}, {{0x8, 4}, 0}};
  for (const auto shares :
       {std::span<const ShareRequest>(two_halves), std::span<const ShareRequest>(four_quarters)}) {
    const Pool pool = make_pool(8, 4, shares).value();
    const RemainderColors& colors = *pool->colors().remainders();
    std::set<std::uint32_t> used;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const auto share = pool->colors(i);
      const auto window = window_of_colors(colors.coloring, shares[i].colors).value();
      const auto own = color::own_chunks(colors.coloring.hash(), window, pool->arena().pages(),
                                         colors.aside_constant);
      const auto& [patterns, places] = share.placed;
      EXPECT_EQ(patterns.has_value(), shares.size() == 2);
      for (std::uint32_t chunk = 0; patterns && chunk < 4; ++chunk) {
        EXPECT_TRUE(own.at(*patterns / 256 + chunk));
        EXPECT_TRUE(used.insert(*patterns / 256 + chunk).second);
      }
      ASSERT_TRUE(places);
      EXPECT_GT(*places, 0U);
      EXPECT_TRUE(own.at(*places / 256));
      EXPECT_TRUE(used.insert(*places / 256).second);
      const auto buffer = pool->allocate(i, 4096).value();
      const auto layout = buffer.layout<remainders>();
      EXPECT_EQ(layout.pages + share.law->device_numbers().steps->first_page,
                pool->arena().aside() + *places);
      EXPECT_EQ(layout.table,
                patterns ? pool->arena().aside() + *patterns : colors.table->address());
    }
  }
}

TEST(RemainderPool, tables_are_left_out_where_the_page_is_full) {
  const Pool& pool = pool_of_sides();
  RemainderColors colors = *pool->colors().remainders();
  const auto window = colors.coloring.window(0);
  const auto own = color::own_chunks(colors.coloring.hash(), window, pool->arena().pages(),
                                     colors.aside_constant);
  colors.aside_taken.assign(own.size(), true);
  const auto none = place_tables(colors, pool->arena(), window).value();
  EXPECT_FALSE(none.patterns || none.places);
  // One chunk is free, and not the colour's own: places go there, patterns do not.
  const auto foreign = std::find(own.begin() + 1, own.end(), false) - own.begin();
  colors.aside_taken[static_cast<std::size_t>(foreign)] = false;
  const auto one = place_tables(colors, pool->arena(), window).value();
  EXPECT_FALSE(one.patterns);
  EXPECT_EQ(one.places, static_cast<std::uint32_t>(foreign * 256));
  EXPECT_TRUE(colors.aside_taken[static_cast<std::size_t>(foreign)]);
}

TEST(RemainderPool, shares_that_overlap_are_refused) {
  constexpr ShareRequest overlapping[] = {{{0x3, 2}, 0}, {{0x2, 2}, 0}};
  EXPECT_THAT(make_pool(4, 2, overlapping).error().message,
              HasSubstr("colours 1 of 2 are in two shares"));
}

TEST(RemainderPool, a_card_that_chooses_its_slices_in_another_way_is_refused) {
  const auto card = test::fake_card().value();  // an H100's masks
  const auto pool = ColoredPool::create(card, scheme_of(2), 4 * page_bytes, sides);
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(pool.error().message, HasSubstr("chooses its slices in another way"));
}

TEST(RemainderPool, a_half_is_proved_from_the_description_alone) {
  test::configure(h200());
  ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
  ::setenv("DEMARC_CACHE", test::fresh_folder("verify").c_str(), 1);
  VerifyColorsPlan plan;
  plan.pool_bytes = 8 * page_bytes;
  EXPECT_THAT(verify_colors(plan).error().message, HasSubstr("no description of 'Fake GPU'"));
  plan.description = "h200";
  const auto report = verify_colors(plan);
  ::unsetenv("DEMARC_CACHE");
  ::unsetenv("DEMARC_LIBCUDA");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->holds);
  EXPECT_NEAR(report->effects[1].slowdown, 1.0, 0.01) << "writes, other colours";
  EXPECT_NEAR(report->effects[3].slowdown, 3.4, 0.1) << "writes, the same colours";
}

}  // namespace
}  // namespace demarc::cuda
