// What a page table has to map so that a share's bytes lie at the addresses of their numbers.
#include "demarc/color/page_pieces.hpp"

#include <gmock/gmock.h>

#include <map>

#include "demarc/base/gf2.hpp"
#include "demarc/color/law.hpp"

namespace demarc::color {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t page_of_arena = std::uint64_t{2} << 20U;
constexpr std::uint64_t smallest_page = 4096;

Result<std::vector<PagePiece>> pieces_of(const std::vector<std::uint64_t>& masks,
                                         std::uint32_t color, const Extent& extent) {
  return page_pieces(*make_law(Parities{masks, color}), {}, extent, page_of_arena, smallest_page);
}

// Written out by hand for chunks of 1 MiB of which every second one is the share's: bit 20 of the
// position is the parity of bits 21 and 22, and the colour.
TEST(PagePieces, are_the_share_s_own_chunks_in_the_order_of_their_numbers) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
  const auto found = page_pieces(*make_law(Parities{{mib | 2 * mib | 4 * mib}, 1}), {},
                                 {LinearByte(0), 4 * mib}, 8 * mib, smallest_page);
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
    EXPECT_EQ(all % smallest_page, 0U);
    EXPECT_EQ(piece.at.raw() / page_of_arena, (piece.at.raw() + piece.bytes - 1) / page_of_arena);
    const std::uint64_t by = all % page_of_arena == 0 ? page_of_arena
                             : all % 65536 == 0       ? 65536
                                                      : smallest_page;
    for (const LinearByte end : {piece.linear, piece.linear + piece.bytes}) {
      const auto cut = page_bytes.find(end);
      EXPECT_TRUE(cut == page_bytes.end() || end.raw() % cut->second == 0) << end;
    }
    for (std::uint64_t into = 0; into < piece.bytes; into += smallest_page) {
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
        const auto pieces = page_pieces(*law, {}, extent, page_of_arena, smallest_page);
        ASSERT_TRUE(pieces) << pieces.error().message;
        const auto pages = mapped(*pieces);
        EXPECT_EQ(pages.size(), page_of_arena / smallest_page);
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
      return page_pieces(*make_law(law), {}, {{}, page_of_arena}, page_of_arena, smallest_page)
          .value()
          .size();
    };
    EXPECT_EQ(count({{0xc4000}, color}), 124U);
    EXPECT_EQ(count({{0x2c4000}, color, {21}}), 63U);
  }
}

TEST(PagePieces, are_refused_where_colours_change_within_a_page) {
  const auto refused =
      page_pieces(*make_law(Parities{{0xab000}, 0}), {}, {{}, page_of_arena}, page_of_arena, 8192);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message,
            "colours change every 4096 bytes, and the smallest page has 8192: a page table cannot "
            "divide them");
  EXPECT_TRUE(
      page_pieces(*make_law(Parities{{0xab000}, 0}), {}, {{}, page_of_arena}, page_of_arena, 4096));
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
