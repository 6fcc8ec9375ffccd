// Images among the data of a program: found by how they begin, and each once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/fatbin/files.hpp"
#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "where: bytes of the image" of each that is found beside those of the sections.
Result<std::vector<std::string>> found_in(const std::string& content) {
  std::vector<FileImage> sections;
  if (content.starts_with("\x7f")) {
    DEMARC_TRY(sections, images_of_program(content, "a.out"));
  }
  DEMARC_TRY(const auto images, images_among_data(content, "a.out", sections));
  std::vector<std::string> all;
  for (const FileImage& one : images) {
    EXPECT_EQ(one.section, "");
    all.push_back(fmt::format("{}: {}", one.where, one.image.bytes.size()));
  }
  return all;
}

const std::string small_fat_binary = made_fat_binary({{.content = std::string(small_ptx)}});
const std::string zero(1, '\0');

TEST(ImagesAmongData, are_fat_binaries_cubins_and_texts_of_ptx) {
  const std::string cubin = kept_file("counted_90.cubin");
  EXPECT_THAT(found_in("data" + small_fat_binary + "data").value(),
              ElementsAre(fmt::format("a.out: byte 4: {}", small_fat_binary.size())));
  EXPECT_THAT(found_in("more data" + cubin).value(),
              ElementsAre(fmt::format("a.out: byte 9: {}", cubin.size())));
  const std::string text = ".version 8.0\n\t.target sm_80\n.address_size 64\n";
  EXPECT_THAT(found_in(zero + text + zero + "x").value(),
              ElementsAre(fmt::format("a.out: byte 1: {}", text.size())));
  EXPECT_THAT(found_in(small_fat_binary + small_fat_binary + zero + cubin + text).value().size(),
              4U);
  EXPECT_THAT(found_in("nothing").value(), IsEmpty());
  EXPECT_THAT(found_in("").value(), IsEmpty());
}

TEST(ImagesAmongData, are_not_looked_for_in_images_that_are_known) {
  EXPECT_THAT(found_in(made_elf(EM_X86_64, {{".nv_fatbin", small_fat_binary}})).value(), IsEmpty())
      << "its PTX is not compressed";
  const std::string program =
      made_elf(EM_X86_64, {{".nv_fatbin", small_fat_binary}, {".data", "1234" + small_fat_binary}});
  ASSERT_EQ(found_in(program).value().size(), 1U);
  EXPECT_THAT(found_in(program).value().front(),
              HasSubstr(fmt::format(": {}", small_fat_binary.size())));
  EXPECT_EQ(found_in(small_fat_binary).value().size(), 1U)
      << "nor the PTX in one that was just found";
}

TEST(ImagesAmongData, are_no_words_of_host_code_that_looks_for_them) {
  EXPECT_THAT(found_in("\x50\xed\x55\xba if (magic)").value(), IsEmpty());
  EXPECT_THAT(found_in(zero + "\x7f"
                              "ELF")
                  .value(),
              IsEmpty());
  EXPECT_THAT(found_in(zero + made_elf(EM_X86_64, {})).value(), IsEmpty());
  for (const char* text :
       {".version %d.%d\n.target sm_%d", ".version 8", ".version .5\n.target sm_80",
        ".version 85\n.target sm_80", ".version 8.", ".version 8.0.target sm_80",
        ".version 8.0 .address_size 64"}) {
    EXPECT_THAT(found_in(text).value(), IsEmpty()) << text;
  }
}

TEST(ImagesAmongData, end_in_the_file) {
  const std::string compressed = kept_file("zstd.fatbin");
  ASSERT_EQ(found_in("data" + compressed).value().size(), 1U);
  EXPECT_THAT(found_in("data" + compressed.substr(0, compressed.size() - 1)).value(), IsEmpty())
      << "it begins like one, and is none";
  EXPECT_THAT(found_in("data" + with(compressed, 4, std::uint16_t{2})).value(), IsEmpty());
  EXPECT_THAT(found_in("data" + with(compressed, 6, std::uint16_t{32})).value(), IsEmpty());
  const std::string cubin = kept_file("counted_90.cubin");
  const auto cut = found_in("data" + cubin.substr(0, cubin.size() / 2));
  ASSERT_FALSE(cut);
  EXPECT_THAT(message_of(cut), HasSubstr("a.out: byte 4"));
  EXPECT_FALSE(found_in(".version 8.0\n.target sm_80\n\x01"));
}

}  // namespace
}  // namespace demarc::fatbin::test
