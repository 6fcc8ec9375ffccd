// Tests that a law survives a message, finds its bytes, and that another law needs its class alone.
#include "demarc/color/law.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(to_text(*parities), R"({"parities":{"masks":[802816],"color":1}})");
  const LawPtr remainders = make_law(half_of_remainders().steps(0).value());
  for (const LawPtr& law : {parities, remainders}) {
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
    EXPECT_EQ(remainders->page_of(linear, law_page), ArenaPage(position.raw() / law_page))
        << linear;
    for (const std::uint32_t color : {0U, 3U}) {
      const LawPtr parities = make_law(Parities{{masks.begin(), masks.end()}, color});
      EXPECT_EQ(parities->position(linear, {}), coloring.position(linear, color)) << linear;
    }
  }
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
