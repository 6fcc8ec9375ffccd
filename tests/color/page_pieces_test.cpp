// What a page table has to map so that a share's bytes lie at the addresses of their numbers.
#include "demarc/color/page_pieces.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "demarc/base/gf2.hpp"
#include "demarc/color/law.hpp"
#include "demarc/device/device.hpp"
#include "demarc/device/pages.hpp"

namespace demarc::color {
namespace {

using testing::HasSubstr;
using Masks = std::vector<std::uint64_t>;

constexpr std::uint64_t page_of_arena = std::uint64_t{2} << 20U;

Result<std::vector<PagePiece>> pieces_of(const Masks& masks, std::uint32_t color,
                                         const Extent& extent) {
  return page_pieces(*make_law(Parities{masks, color}), {}, extent, page_of_arena);
}

// Written out by hand for chunks of 1 MiB of which every second one is the share's: bit 20 of the
// position is the parity of bits 21 and 22, and the colour.
TEST(PagePieces, are_the_share_s_own_chunks_in_the_order_of_their_numbers) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
  const auto found = page_pieces(*make_law(Parities{{mib | 2 * mib | 4 * mib}, 1}), {},
                                 {LinearByte(0), 4 * mib}, 8 * mib);
  ASSERT_TRUE(found) << found.error().message;
  const std::vector<PagePiece> expected{{LinearByte(0), ArenaByte(mib), 2 * mib},
                                        {LinearByte(2 * mib), ArenaByte(4 * mib), mib},
                                        {LinearByte(3 * mib), ArenaByte(7 * mib), mib}};
  EXPECT_EQ(*found, expected);
}

// As the module maps them: later ones in the place of earlier ones, each by pages that are not cut.
std::map<LinearByte, ArenaByte> mapped(const std::vector<PagePiece>& pieces) {
  std::map<LinearByte, ArenaByte> pages;
  std::map<LinearByte, std::uint64_t> page_bytes;  // by which a page is mapped
  for (const PagePiece& piece : pieces) {
    const std::uint64_t all = piece.linear.raw() | piece.at.raw() | piece.bytes;
    EXPECT_EQ(all % gpu::smallest_page_bytes, 0U);
    EXPECT_EQ(piece.at.raw() / page_of_arena, (piece.at.raw() + piece.bytes - 1) / page_of_arena);
    const std::uint64_t by = all % page_of_arena == 0 ? page_of_arena
                             : all % 65536 == 0       ? 65536
                                                      : gpu::smallest_page_bytes;
    for (const LinearByte end : {piece.linear, piece.linear + piece.bytes}) {
      const auto cut = page_bytes.find(end);
      EXPECT_TRUE(cut == page_bytes.end() || end.raw() % cut->second == 0) << end;
    }
    for (std::uint64_t into = 0; into < piece.bytes; into += gpu::smallest_page_bytes) {
      pages[piece.linear + into] = piece.at + into;
      page_bytes[piece.linear + into] = by;
    }
  }
  return pages;
}

// None goes on from one page to the next, since each page is memory of its own.
TEST(PagePieces, show_every_byte_in_its_own_colour) {
  for (const Parities& masks : {Parities{{0xc4000}}, Parities{{0x18a000, 0xc4000}, 0, {13, 14}},
                                Parities{{0x2c4000}, 0, {21}}, Parities{{0x4c4000}, 0, {22}},
                                Parities{{0x38a000, 0x4c4000}, 0, {21, 22}}}) {
    for (std::uint32_t color = 0; color < 1U << masks.masks.size(); ++color) {
      Parities own = masks;
      own.color = color;
      const auto law = make_law(own);
      for (const std::uint64_t number : {0U, 1U, 2U}) {
        const Extent extent{LinearByte(number * page_of_arena), page_of_arena};
        const auto pieces = page_pieces(*law, {}, extent, page_of_arena);
        ASSERT_TRUE(pieces) << pieces.error().message;
        const auto pages = mapped(*pieces);
        EXPECT_EQ(pages.size(), page_of_arena / gpu::smallest_page_bytes);
        for (const auto& [linear, at] : pages) {
          EXPECT_EQ(law->position(linear, {}), at);
          for (std::size_t i = 0; i < own.masks.size(); ++i) {
            EXPECT_EQ(parity(at.raw(), own.masks[i]), color >> i & 1U);
          }
        }
      }
    }
  }
}

// Bits 18 and 19 turn the order of a pair of chunks round, so that on each of two pages two of the
// 64 chunks touch the next one. On pages of opposite constants one mapping is laid under the
// chunks of the other page.
TEST(PagePieces, are_half_as_many_on_pages_of_opposite_constants) {
  for (const std::uint32_t color : {0U, 1U}) {
    const auto count = [&](const Parities& law) {
      return page_pieces(*make_law(law), {}, {{}, page_of_arena}, page_of_arena).value().size();
    };
    EXPECT_EQ(count({{0xc4000}, color}), 124U);
    EXPECT_EQ(count({{0x2c4000}, color, {21}}), 63U);
  }
}

// Pages of the card's memory in which bits beyond a page add nothing to these masks, as a pool
// keeps them.
std::vector<std::uint64_t> pages_of_one_constant(const Masks& masks, std::size_t count) {
  std::vector<std::uint64_t> pages;
  for (std::uint64_t at = 0; pages.size() < count; at += page_of_arena) {
    if (std::none_of(masks.begin(), masks.end(),
                     [at](std::uint64_t mask) { return parity(at, mask) != 0; })) {
      pages.push_back(at);
    }
  }
  return pages;
}

// By the tables of Fractional GPUs (RTAS 2019), which take physical addresses: bytes of a page have
// one colour if they agree in every sum of module bits that is one throughout each page.
TEST(PagePieces, of_a_gtx_1080_and_a_v100_divide_an_arena_by_the_maps_of_these_cards) {
  for (const auto& [card, count] : {std::pair("gtx1080", 2U), std::pair("v100", 8U)}) {
    const gpu::AddressMap map = *gpu::find_device(card).value().address_map;
    const Masks physical = gpu::masks_at_granularity(map.module.rows, gpu::smallest_page_bytes);
    ASSERT_EQ(std::uint32_t{1} << physical.size(), count) << card;
    Masks masks = physical;
    for (std::uint64_t& mask : masks) mask &= page_of_arena - 1;
    const auto pages = pages_of_one_constant(physical, 8);
    std::vector<std::optional<std::uint32_t>> owner(pages.size() * page_of_arena /
                                                    gpu::smallest_page_bytes);
    std::set<std::uint32_t> modules_of_color[8];
    for (std::uint32_t color = 0; color < count; ++color) {
      const auto law = make_law(Parities{masks, color});
      const LinearByte end(law->bytes({page_of_arena, pages.size()}));
      LinearByte next = {};
      std::vector<PagePiece> all;
      for (LinearByte first = {}; first < end; first = first + page_of_arena) {
        const Extent extent{first, std::min(page_of_arena, end - first)};
        const auto pieces = page_pieces(*law, {}, extent, page_of_arena);
        ASSERT_TRUE(pieces) << pieces.error().message;
        all.insert(all.end(), pieces->begin(), pieces->end());
      }
      for (const PagePiece& piece : all) {
        EXPECT_EQ(piece.linear, next);
        next = next + piece.bytes;
        for (std::uint64_t at = piece.at.raw(); at < piece.at.raw() + piece.bytes; at += 1024) {
          const std::uint64_t address = pages[at / page_of_arena] + at % page_of_arena;
          for (std::size_t i = 0; i < physical.size(); ++i) {
            ASSERT_EQ(parity(address, physical[i]), color >> i & 1U) << card << " at " << at;
          }
          modules_of_color[color].insert(map.module(address));
          if (at % gpu::smallest_page_bytes != 0) continue;
          ASSERT_FALSE(owner[at / gpu::smallest_page_bytes]) << "two colours have page " << at;
          owner[at / gpu::smallest_page_bytes] = color;
        }
      }
      EXPECT_EQ(next, end);
    }
    EXPECT_EQ(std::count(owner.begin(), owner.end(), std::nullopt), 0) << "each page has a colour";
    // No module serves two colours: each has its part of the L2's sets, the banks and the buses.
    std::size_t served = 0;
    for (const auto& modules : modules_of_color) served += modules.size();
    EXPECT_EQ(served, map.module.count()) << card;
  }
}

TEST(PagePieces, are_refused_where_colours_change_within_a_page) {
  const auto refused =
      page_pieces(*make_law(Parities{{0xab800}, 0}), {}, {{}, page_of_arena}, page_of_arena);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message,
            "colours change every 2048 bytes: a page of 4 KiB has bytes of several colours, so no "
            "page table divides them; give the program PTX, or a build of it that has PTX");
  EXPECT_TRUE(
      page_pieces(*make_law(Parities{{0xab000}, 0}), {}, {{}, page_of_arena}, page_of_arena));
  EXPECT_FALSE(page_pieces(*make_law(Parities{}), {}, {{}, page_of_arena}, page_of_arena))
      << "a law without colours has no granule";
}

TEST(PagePieces, consist_of_whole_granules) {
  for (const Extent& extent : {Extent{LinearByte(4096), 16384}, Extent{LinearByte(0), 16384 + 4096},
                               Extent{}, Extent{LinearByte(16384), page_of_arena}}) {
    const auto refused = pieces_of({0xc4000}, 0, extent);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(refused.error().message, HasSubstr("no whole granules of 16384 bytes of one page"));
  }
}

}  // namespace
}  // namespace demarc::color
