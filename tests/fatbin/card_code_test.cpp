// What of an image, and of a program's images, a card can use.
#include "demarc/fatbin/card_code.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Kind = CardCodeKind;

Result<CardCode> code_of(const std::string& bytes, std::uint32_t sm) {
  DEMARC_TRY(const Image image, image_in(bytes, "f"));
  return card_code(FileImage{"f", ".nv_fatbin", image}, sm);
}

Result<Kind> kind_of(const std::string& bytes, std::uint32_t sm) {
  DEMARC_TRY(const CardCode code, code_of(bytes, sm));
  return code.kind;
}

TEST(CardCode, is_ptx_where_the_card_can_compile_some_whatever_else_is_there) {
  const auto ptx = code_of(kept_file("ptx_only.fatbin"), 90);
  ASSERT_TRUE(ptx) << message_of(ptx);
  EXPECT_EQ(ptx->kind, Kind::ptx);
  EXPECT_THAT(ptx->ptx, HasSubstr(".target sm_90a")) << "the highest that it can compile";
  EXPECT_THAT(ptx->kernels, IsEmpty());
  const std::string both = made_fat_binary(
      {{.kind = 2, .content = kept_file("counted_90.cubin")}, {.content = std::string(small_ptx)}});
  EXPECT_EQ(kind_of(both, 90), Kind::ptx);
  EXPECT_EQ(code_of(both, 90)->ptx, small_ptx);
  EXPECT_EQ(kind_of(std::string(small_ptx), 90), Kind::ptx);
}

TEST(CardCode, is_machine_code_where_the_card_runs_some_and_can_compile_no_ptx) {
  const auto code = code_of(kept_file("elf_only.fatbin"), 90);
  ASSERT_TRUE(code) << message_of(code);
  EXPECT_EQ(code->kind, Kind::machine_code);
  EXPECT_THAT(code->kernels, ElementsAre("_Z7countedPi"));
  EXPECT_EQ(code->ptx, "");
  const std::string later = made_fat_binary(
      {{.kind = 2, .sm = 75, .content = kept_file("counted_75.cubin")}, {.sm = 80}});
  EXPECT_EQ(kind_of(later, 75), Kind::machine_code) << "its PTX is for later cards";
  EXPECT_EQ(kind_of(kept_file("counted_90.cubin"), 90), Kind::machine_code);
}

TEST(CardCode, for_other_cards_alone_is_not_this_ones) {
  EXPECT_EQ(kind_of(kept_file("elf_only.fatbin"), 80), Kind::other_cards);
  EXPECT_EQ(kind_of(kept_file("counted_90.cubin"), 80), Kind::other_cards);
  EXPECT_EQ(kind_of(std::string(small_ptx), 75), Kind::other_cards);
  const std::string unread = made_fat_binary({{.kind = 2, .sm = 75, .content = "no cubin"}});
  EXPECT_EQ(kind_of(unread, 90), Kind::other_cards) << "what the card cannot use is not read";
}

TEST(CardCode, of_a_kind_that_is_not_known_is_told_unless_something_better_is_there) {
  EXPECT_EQ(kind_of(kept_file("lto.fatbin"), 90), Kind::for_linking);
  EXPECT_EQ(kind_of(made_fat_binary({{.kind = 16, .content = "?"}}), 90), Kind::unknown);
  const MadeEntry unknown{.kind = 16, .content = "?"};
  const MadeEntry other{.kind = 2, .sm = 75, .content = kept_file("counted_75.cubin")};
  EXPECT_EQ(kind_of(made_fat_binary({other, unknown}), 90), Kind::unknown);
  EXPECT_EQ(kind_of(made_fat_binary({other, unknown}), 75), Kind::machine_code);
  EXPECT_EQ(kind_of(made_fat_binary({unknown, {.content = std::string(small_ptx)}}), 90),
            Kind::ptx);
}

TEST(CardCode, of_nothing_is_none) {
  EXPECT_EQ(kind_of(made_fat_binary({}), 90), Kind::none);
}

TEST(CardCode, that_cannot_be_read_is_an_error) {
  EXPECT_FALSE(code_of(made_fat_binary({{.kind = 2, .sm = 90, .content = "no cubin"}}), 90));
  EXPECT_FALSE(code_of(made_fat_binary({{.content = "no ptx"}}), 90));
  EXPECT_FALSE(
      code_of(made_fat_binary({{.flags = 0x4000000, .content = std::string(small_ptx)}}), 90));
  const std::string broken = kept_file("elf_only.fatbin").substr(0, 60);
  EXPECT_FALSE(card_code(FileImage{"f", "", Image{ImageKind::fat_binary, broken, {}}}, 90));
}

// The kinds of a program's images. Those of `linked_from` went into `loaded`.
std::vector<Kind> kinds_of(const std::vector<std::string>& loaded,
                           const std::vector<std::string>& linked_from) {
  std::vector<FileImage> images;
  for (const std::string& bytes : loaded)
    images.push_back({"f", ".nv_fatbin", image_in(bytes, "f").value()});
  for (const std::string& bytes : linked_from)
    images.push_back({"f", "__nv_relfatbin", image_in(bytes, "f").value()});
  std::vector<Kind> kinds;
  const auto codes = card_codes(images, 90);
  EXPECT_TRUE(codes) << message_of(codes);
  for (const CardCode& code : codes.value()) kinds.push_back(code.kind);
  return kinds;
}

TEST(CardCodes, of_a_program_are_those_of_its_images_in_their_order) {
  EXPECT_THAT(kinds_of({kept_file("elf_only.fatbin"), kept_file("ptx_only.fatbin")}, {}),
              ElementsAre(Kind::machine_code, Kind::ptx));
  EXPECT_THAT(kinds_of({}, {}), IsEmpty());
}

TEST(CardCodes, of_a_linked_program_have_the_ptx_of_the_one_image_that_it_was_linked_from) {
  const std::string linked = kept_file("elf_only.fatbin");
  const std::string ptx = kept_file("ptx_only.fatbin");
  EXPECT_THAT(kinds_of({linked}, {ptx}), ElementsAre(Kind::ptx));
  EXPECT_THAT(kinds_of({linked}, {ptx, ptx}), ElementsAre(Kind::machine_code))
      << "each has a part of the PTX";
  EXPECT_THAT(kinds_of({linked}, {linked}), ElementsAre(Kind::machine_code));
  EXPECT_THAT(kinds_of({linked, linked}, {ptx}),
              ElementsAre(Kind::machine_code, Kind::machine_code))
      << "which of them was linked is not known";
  EXPECT_THAT(kinds_of({ptx, linked}, {ptx}), ElementsAre(Kind::ptx, Kind::ptx));
}

TEST(CardCodes, of_a_program_with_an_image_that_cannot_be_read_are_an_error) {
  const std::string broken = made_fat_binary({{.kind = 2, .sm = 90, .content = "no cubin"}});
  EXPECT_FALSE(card_codes({{"f", ".nv_fatbin", image_in(broken, "f").value()}}, 90));
}

}  // namespace
}  // namespace demarc::fatbin::test
