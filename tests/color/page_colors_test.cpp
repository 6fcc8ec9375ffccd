// How many colours of each card a page table can divide, and that bytes of pages agree.
#include "demarc/color/page_colors.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "demarc/base/gf2.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/color/page_pieces.hpp"
#include "demarc/device/pages.hpp"

namespace demarc::color {
namespace {

using testing::HasSubstr;
using Masks = std::vector<std::uint64_t>;

constexpr std::uint64_t two_mebibytes = std::uint64_t{2} << 20U;

gpu::Device device_named(const char* name) {
  return gpu::find_device(name).value();
}

TEST(PageColors, of_an_h100_are_four_in_runs_of_8_kib) {
  for (const char* card : {"h100-sxm", "h100-80gb-hbm3"}) {
    EXPECT_EQ(page_colors(device_named(card)).value(), (PageColors{4, 8192})) << card;
  }
  // Eight colours lie in runs of 2 KiB, which no page table divides.
  const auto eight = color_scheme(device_named("h100-80gb-hbm3"), 8).value();
  EXPECT_EQ(eight.law_of_granules()->granule(), 2048U);
  gpu::Device halves = device_named("h100-sxm");
  halves.address_map->isolation.resize(1);
  EXPECT_EQ(page_colors(halves).value(), (PageColors{2, 16'384}));
}

TEST(PageColors, are_refused_on_an_h200_since_its_slices_change_within_a_page) {
  const auto refused = page_colors(device_named("h200"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message,
            "slices change every 256 bytes: a page of 4 KiB has bytes of several colours, so no "
            "page table divides them; give the program PTX, or a build of it that has PTX");
}

TEST(PageColors, are_those_of_remainders_too_if_their_chunks_are_pages) {
  gpu::Device device = device_named("h200");
  gpu::AddressMap& map = *device.address_map;
  for (const std::uint64_t interleave : {2048U, 4096U}) {
    map.interleave_bytes = interleave;
    map.module.rows.clear();
    map.stack->number.rows.clear();
    for (std::uint64_t bit = interleave; bit < map.page_bytes; bit *= 2) {
      map.stack->number.rows.push_back(bit);
    }
    const auto found = page_colors(device);
    EXPECT_EQ(found.has_value(), interleave == 4096);
    if (!found) continue;
    EXPECT_EQ(*found, (PageColors{4, 4096})) << "of six runs";
  }
}

TEST(PageColors, are_not_known_where_a_description_has_no_measurements) {
  for (const char* card : {"v100", "gtx1080", "a100", "p100"}) {
    const auto refused = page_colors(device_named(card));
    ASSERT_FALSE(refused) << card;
    EXPECT_EQ(refused.error(), color_scheme(device_named(card), 2).error()) << card;
  }
}

// The functions of modules that Fractional GPUs (RTAS 2019) published.
TEST(PageColors, of_the_masks_of_a_gtx_1080_are_two_and_of_a_v100_eight_at_4_kib) {
  for (const std::uint64_t page_bytes : {std::uint64_t{0}, two_mebibytes}) {
    EXPECT_EQ(page_colors(device_named("gtx1080").address_map->module.rows, page_bytes).value(),
              (PageColors{2, 4096}));
    EXPECT_EQ(page_colors(device_named("v100").address_map->module.rows, page_bytes).value(),
              (PageColors{8, 4096}));
  }
}

TEST(PageColors, of_masks_are_at_most_64_and_lie_within_a_page_of_the_arena) {
  Masks masks;
  for (unsigned bit = 12; bit < 21; ++bit) masks.push_back(std::uint64_t{1} << bit);
  EXPECT_EQ(page_colors(masks, two_mebibytes).value(), (PageColors{64, 1U << 15U}))
      << "the six that change most seldom";
  EXPECT_EQ(page_colors(Masks{0x800, 0x201000, 0x1000}, two_mebibytes).value(),
            (PageColors{2, 4096}))
      << "both masks are one within a page";
  EXPECT_EQ(page_colors(Masks{0x201000, 0x1000}, 0).value(), (PageColors{4, 4096}));
  EXPECT_EQ(page_colors(Masks{0x400, 0x2800}, two_mebibytes).error().message,
            "colours change every 2048 bytes: a page of 4 KiB has bytes of several colours, so no "
            "page table divides them; give the program PTX, or a build of it that has PTX");
  for (const Masks& none : {Masks{}, Masks{0x200000}}) {
    const auto refused = page_colors(none, two_mebibytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("no mask divides pages of 2097152 bytes"));
  }
}

// By every sixteenth byte of 64 pages: the colours of the sums of masks that are one in each page
// are as many as the different values that pages have.
RC_GTEST_PROP(PageColors, are_as_many_as_the_bytes_of_pages_say, ()) {
  constexpr std::uint64_t arena = std::uint64_t{64} * gpu::smallest_page_bytes;
  const auto bits_of_pages = rc::gen::resize(100, rc::gen::inRange<std::uint64_t>(0, 64));
  const auto bits_within = rc::gen::weightedOneOf<std::uint64_t>(
      {{2, rc::gen::just(std::uint64_t{0})},
       {1, rc::gen::resize(100, rc::gen::inRange<std::uint64_t>(0, 256))}});
  Masks masks;
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
    masks.push_back(*bits_of_pages << 12U | *bits_within << 4U);
  }
  // A sum of masks is one in each page if no two bytes of a page differ in it.
  Masks same_in_pages;
  for (const std::uint64_t sum : mask_sums(masks)) {
    bool same = true;
    for (std::uint64_t at = 0; at < arena && same; at += 16) {
      same =
          parity(at, sum) == parity(at / gpu::smallest_page_bytes * gpu::smallest_page_bytes, sum);
    }
    if (same) same_in_pages.push_back(sum);
  }
  std::set<std::vector<unsigned>> colors;
  for (std::uint64_t first = 0; first < arena; first += gpu::smallest_page_bytes) {
    std::vector<unsigned> color;
    for (const std::uint64_t sum : same_in_pages) color.push_back(parity(first, sum));
    colors.insert(std::move(color));
  }
  const auto found = page_colors(masks, arena);
  RC_ASSERT(found.has_value() == (colors.size() > 1));
  if (found) {
    RC_ASSERT(found->colors == colors.size());
    RC_ASSERT(found->granule % gpu::smallest_page_bytes == 0);
  }
}

// What the refusal says: each page has bytes of both halves.
TEST(PageColors, of_an_h200_would_share_each_page) {
  const RemainderHash hash = h200_remainders();
  for (const std::uint32_t constant : {0U, 5U, 63U}) {
    const auto own = own_chunks(hash, {0, 24}, 3, constant);
    const std::size_t chunks = gpu::smallest_page_bytes / 256;
    for (std::size_t first = 0; first < own.size(); first += chunks) {
      const auto begin = own.begin() + static_cast<std::ptrdiff_t>(first);
      const auto count = std::count(begin, begin + static_cast<std::ptrdiff_t>(chunks), true);
      EXPECT_GT(count, 0);
      EXPECT_LT(count, static_cast<std::ptrdiff_t>(chunks));
    }
  }
}

}  // namespace
}  // namespace demarc::color
