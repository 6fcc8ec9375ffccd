// What a page table has to map so that a share's bytes lie at the addresses of their numbers.
#include "demarc/color/page_pieces.hpp"

#include <gmock/gmock.h>

#include "demarc/base/gf2.hpp"
#include "demarc/color/law.hpp"

namespace demarc::color {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t page_of_arena = std::uint64_t{2} << 20U;

Result<std::vector<PagePiece>> pieces_of(const std::vector<std::uint64_t>& masks,
                                         std::uint32_t color, const Extent& extent) {
  return page_pieces(*make_law(Parities{masks, color}), {}, extent, page_of_arena,
                     smallest_page_bytes);
}

// Written out by hand for chunks of 1 MiB of which every second one is the share's: bit 20 of the
// position is the parity of bits 21 and 22, and the colour.
TEST(PagePieces, are_the_share_s_own_chunks_in_the_order_of_their_numbers) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
  const auto found = page_pieces(*make_law(Parities{{mib | 2 * mib | 4 * mib}, 1}), {},
                                 {LinearByte(0), 4 * mib}, 8 * mib, smallest_page_bytes);
  ASSERT_TRUE(found) << found.error().message;
  const std::vector<PagePiece> expected{{LinearByte(0), ArenaByte(mib), 2 * mib},
                                        {LinearByte(2 * mib), ArenaByte(4 * mib), mib},
                                        {LinearByte(3 * mib), ArenaByte(7 * mib), mib}};
  EXPECT_EQ(*found, expected);
}

// Pieces that touch are one, but none goes on from one page to the next, since each page is memory
// of its own.
TEST(PagePieces, hold_every_byte_once_in_its_own_colour_and_within_a_page) {
  for (const auto& [masks, colors] :
       {std::pair{std::vector<std::uint64_t>{0xc4000}, 2U},
        std::pair{std::vector<std::uint64_t>{0x18a000, 0xc4000}, 4U}}) {
    for (std::uint32_t color = 0; color < colors; ++color) {
      const Extent extent{LinearByte(page_of_arena), 2 * page_of_arena};
      const auto law = make_law(Parities{masks, color});
      const auto pieces = page_pieces(*law, {}, extent, page_of_arena, smallest_page_bytes);
      ASSERT_TRUE(pieces) << pieces.error().message;
      LinearByte next = extent.first;
      for (const PagePiece& piece : *pieces) {
        EXPECT_EQ(piece.linear, next);
        EXPECT_EQ(piece.bytes % smallest_page_bytes, 0U);
        EXPECT_EQ(piece.at.raw() / page_of_arena,
                  (piece.at.raw() + piece.bytes - 1) / page_of_arena);
        for (std::uint64_t into = 0; into < piece.bytes; into += smallest_page_bytes) {
          EXPECT_EQ(law->position(piece.linear + into, {}), piece.at + into);
          for (std::size_t i = 0; i < masks.size(); ++i) {
            EXPECT_EQ(parity(piece.at.raw() + into, masks[i]), color >> i & 1U);
          }
        }
        next = piece.linear + piece.bytes;
      }
      EXPECT_EQ(next, extent.end());
    }
  }
  // Bits 18 and 19 turn the order of a pair of chunks round, so that in each of the two pages two
  // of the 64 chunks touch the next one.
  const auto pieces = pieces_of({0xc4000}, 0, {LinearByte(0), page_of_arena});
  ASSERT_TRUE(pieces);
  EXPECT_EQ(pieces->size(), 124U);
}

TEST(PagePieces, are_refused_where_colours_change_within_a_page) {
  const auto refused =
      page_pieces(*make_law(Parities{{0xab000}, 0}), {}, {{}, page_of_arena}, page_of_arena, 8192);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message,
            "colours change every 4096 bytes: a page of 8 KiB has bytes of several colours, so no "
            "page table divides them; give the program PTX, or a build of it that has PTX");
  EXPECT_TRUE(
      page_pieces(*make_law(Parities{{0xab000}, 0}), {}, {{}, page_of_arena}, page_of_arena, 4096));
}

TEST(PagePieces, consist_of_whole_granules) {
  for (const Extent& extent :
       {Extent{LinearByte(4096), page_of_arena}, Extent{LinearByte(0), page_of_arena + 4096}}) {
    const auto refused = pieces_of({0xc4000}, 0, extent);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(refused.error().message, HasSubstr("whole granules of 16384 bytes"));
  }
}

}  // namespace
}  // namespace demarc::color
