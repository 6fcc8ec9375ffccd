// Tests that a law survives a message, finds its bytes, and that another law needs its class alone.
#include "demarc/color/law.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/gf2.hpp"
#include "demarc/color/coloring.hpp"
#include "striped_law.hpp"

namespace demarc::color {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t law_page = std::uint64_t{2} << 20U;

std::vector<LawKind> with_stripes() {
  std::vector<LawKind> kinds(law_kinds().begin(), law_kinds().end());
  kinds.push_back({"stripes", StripedLaw::read});
  return kinds;
}

Result<LawPtr> read_back(const std::string& text, std::span<const LawKind> kinds = law_kinds()) {
  DEMARC_TRY(const Json json, parse_json(text, "share"));
  FieldReader reader(JsonObject::of(json, "share").value());
  LawPtr law = read_law(reader, kinds);
  DEMARC_CHECK(reader.finish());
  return law;
}

RemainderColoring half_of_remainders() {
  return RemainderColoring::make(h200_remainders(), {{40, 24}}, std::vector<std::uint32_t>{7, 1})
      .value();
}

TEST(Law, survives_a_message) {
  const LawPtr parities = make_law(Parities{{0xc4000}, 1});
  EXPECT_EQ(to_text(*parities), R"({"parities":{"masks":[802816],"color":1,"pivots":[]}})");
  const LawPtr in_pairs = make_law(Parities{{0x2c4000}, 1, {21}});
  EXPECT_EQ(to_text(*in_pairs), R"({"parities":{"masks":[2899968],"color":1,"pivots":[21]}})");
  const LawPtr remainders = make_law(half_of_remainders().steps(0).value());
  for (const LawPtr& law : {parities, in_pairs, remainders}) {
    const auto read = read_back(to_text(*law));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(to_text(**read), to_text(*law));
  }
  EXPECT_NE(to_text(*parities), to_text(*remainders));
}

TEST(Law, in_a_message_is_one_and_known) {
  EXPECT_THAT(read_back("{}").error().message,
              HasSubstr("share: one of 'parities' and 'remainders' was expected"));
  EXPECT_THAT(read_back(R"({"parities":{"color":1,"masks":[2]},"remainders":{}})").error().message,
              HasSubstr("one of 'parities' and 'remainders' was expected"));
  EXPECT_THAT(read_back(R"({"stripes":{"color":1}})").error().message,
              HasSubstr("one of 'parities' and 'remainders' was expected"));
  EXPECT_THAT(read_back(R"({"parities":{"color":1}})").error().message, HasSubstr("masks"));
}

TEST(Law, finds_each_byte_where_the_colouring_says) {
  const auto coloring = Coloring::make(std::vector<std::uint64_t>{0x38a000, 0xc4000}, 0).value();
  const auto masks = coloring.masks();
  const RemainderColoring run = half_of_remainders();
  const LawPtr remainders = make_law(run.steps(0).value());
  const std::vector<std::byte> table = run.table();
  EXPECT_GE(remainders->bytes({law_page, 2}), run.color_bytes(0));
  for (std::uint64_t at = 5; at < run.color_bytes(0); at += 3001) {
    const LinearByte linear(at);
    const ArenaByte position = run.position(linear, 0);
    EXPECT_EQ(remainders->position(linear, table), position) << linear;
    const PageRun own{ArenaPage(position.raw() / law_page), 1};
    EXPECT_EQ(remainders->pages_of({linear, 1}, law_page), own) << linear;
    for (const std::uint32_t color : {0U, 3U}) {
      const LawPtr parities = make_law(Parities{{masks.begin(), masks.end()}, color});
      EXPECT_EQ(parities->position(linear, {}), coloring.position(linear, color)) << linear;
      const PageRun one{ArenaPage(coloring.position(linear, color).raw() / law_page), 1};
      EXPECT_EQ(parities->pages_of({linear, 1}, law_page), one) << linear;
    }
  }
}

// Groups of four pages with two masks, of two with one: every share has a byte in its place on the
// page of the group that gives it the colour, and the shares divide the arena.
TEST(Law, of_groups_of_pages_divides_them_byte_by_byte) {
  constexpr std::uint64_t small = 1U << 16U;
  constexpr std::uint64_t step = 1U << 10U;
  const struct {
    std::vector<std::uint64_t> masks;
    std::vector<std::uint32_t> pivots;
    std::uint64_t group;
  } cases[] = {{{0x15400}, {16}, 2}, {{0x15400, 0x22800}, {16, 17}, 4}, {{0x32c00}, {17}, 4}};
  for (const auto& one : cases) {
    const Arena arena{small, 3 * one.group};
    std::vector<int> seen(arena.pages * small / step);
    for (std::uint32_t color = 0; color < 1U << one.masks.size(); ++color) {
      const LawPtr law = make_law(Parities{one.masks, color, one.pivots});
      ASSERT_TRUE(law->check(arena, {}));
      EXPECT_EQ(law->granule(), step);
      EXPECT_EQ(law->bytes(arena), arena.pages * small >> one.masks.size());
      for (LinearByte at(0); at < LinearByte(law->bytes(arena)); at = at + step) {
        const ArenaByte position = law->position(at, {});
        ++seen.at(position.raw() / step);
        EXPECT_EQ(position.raw() % small, at.raw() % small) << "in its place on the page";
        for (std::size_t i = 0; i < one.masks.size(); ++i) {
          EXPECT_EQ(parity(position.raw(), one.masks[i]), color >> i & 1U);
        }
        const PageRun pages = law->pages_of({at, step}, small);
        EXPECT_GE(ArenaPage(position.raw() / small), pages.first);
        EXPECT_LT(ArenaPage(position.raw() / small), pages.first + pages.count);
        EXPECT_LE((pages.first + pages.count).raw(), arena.pages);
      }
    }
    EXPECT_THAT(seen, testing::Each(1)) << one.group;
  }
}

TEST(Law, of_groups_of_pages_is_for_whole_groups_that_lie_at_multiples_of_them) {
  const LawPtr law = make_law(Parities{{0x32c00}, 0, {17}});
  constexpr std::uint64_t small = 1U << 16U;
  EXPECT_TRUE(law->check({small, 4}, {}));
  EXPECT_EQ(law->room({small, 4}).alignment, 4 * small);
  EXPECT_EQ(make_law(Parities{{0x2400}, 0})->room({small, 4}).alignment, 2 * small);
  for (const std::uint64_t pages : {1U, 2U, 3U, 5U, 6U}) {
    const auto refused = law->check({small, pages}, {});
    ASSERT_FALSE(refused) << pages;
    EXPECT_THAT(refused.error().message, HasSubstr("are no whole groups"));
  }
  EXPECT_FALSE(make_law(Parities{{std::uint64_t{1} << 63U}, 0})->check({small, 4}, {}));
  EXPECT_FALSE(make_law(Parities{{0x400}, 0, {10, 11}})->check({small, 4}, {}));
  EXPECT_FALSE(make_law(Parities{{}, 0})->check({small, 4}, {}));
}

// One class, and one row that names it: messages, text and addresses follow.
TEST(Law, that_is_added_needs_its_class_alone) {
  const LawPtr law = std::make_shared<const StripedLaw>(Stripes{1});
  EXPECT_EQ(to_text(*law), R"({"stripes":{"color":1}})");
  const auto read = read_back(to_text(*law), with_stripes());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->position(LinearByte(5000), {}), ArenaByte(3 * 4096 + 904));
  EXPECT_THAT(read_back("{}", with_stripes()).error().message, HasSubstr("'stripes'"));
}

}  // namespace
}  // namespace demarc::color
