// The device code that a file holds, the list of it, and its PTX as files.
#include "demarc/fatbin/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

using testing::HasSubstr;

std::string file_refusal_of(const std::string& content) {
  return message_of(images_of(content, "a.out"));
}

// A program for the CPU with a section of that name.
std::string program_with(const MadeSection& section) {
  return made_elf(EM_X86_64, {{".text", "code"}, section});
}

std::string report_of(const std::string& content, bool as_json = false) {
  const auto file = images_of(content, "a.out");
  EXPECT_TRUE(file) << message_of(file);
  return file ? images_report(*file, as_json) : "";
}

TEST(FileImages, a_program_has_the_fat_binaries_of_both_sections_in_their_order) {
  const std::string first = kept_file("lz4.fatbin");
  const std::string second = kept_file("none.fatbin");
  const std::string linked_from = kept_file("zstd.fatbin");
  const std::string program = made_elf(
      EM_X86_64, {{".nv_fatbin", first + std::string(8, '\0') + second + std::string(16, '\0')},
                  {".data", "not looked at"},
                  {"__nv_relfatbin", linked_from}});
  const auto file = images_of(program, "a.out");
  ASSERT_TRUE(file) << message_of(file);
  ASSERT_EQ(file->images.size(), 3U);
  EXPECT_EQ(file->images[0].image.bytes, first);
  EXPECT_EQ(file->images[1].image.bytes, second);
  EXPECT_EQ(file->images[2].image.bytes, linked_from);
  EXPECT_EQ(file->images[1].where, "a.out: .nv_fatbin: image 1");
  EXPECT_EQ(file->images[2].section, "__nv_relfatbin");
}

TEST(FileImages, fat_binaries_cubins_and_ptx_are_files_of_one_image) {
  for (const char* name : {"lz4.fatbin", "counted_90.cubin"}) {
    const std::string content = kept_file(name);
    const auto file = images_of(content, "f");
    ASSERT_TRUE(file) << message_of(file);
    ASSERT_EQ(file->images.size(), 1U);
    EXPECT_EQ(file->images[0].image.bytes, content);
    EXPECT_EQ(file->images[0].where, "f");
    EXPECT_EQ(file_refusal_of(content + std::string(8, '\0')), "");
    EXPECT_THAT(file_refusal_of(content + "more"), HasSubstr("a.out: 4 bytes follow behind the "));
  }
  EXPECT_EQ(images_of(std::string(small_ptx), "f")->images.at(0).image.bytes, small_ptx);
}

TEST(FileImages, copies_keep_the_bytes) {
  auto file = std::make_unique<FileImages>(*images_of(kept_file("lz4.fatbin"), "f"));
  const FileImages copy = *file;
  file.reset();
  EXPECT_EQ(copy.images.at(0).image.bytes, kept_file("lz4.fatbin"));
}

TEST(FileImages, a_file_that_a_program_loads_has_one) {
  const auto path = demarc::test::fresh_folder("loadable") / "code";
  const std::string fat_binary = kept_file("lz4.fatbin");
  ASSERT_TRUE(write_file(path, fat_binary));
  EXPECT_EQ(read_loadable(path)->images.at(0).image.bytes, fat_binary);
  ASSERT_TRUE(write_file(
      path, program_with({".nv_fatbin", fat_binary + std::string(8, '\0') + fat_binary})));
  EXPECT_EQ(message_of(read_loadable(path)),
            path.string() + ": it holds 2 images; only one can be loaded");
}

TEST(FileImages, archives_are_refused_by_name) {
  const std::string refusal =
      "a.out: is an archive; 'ar x a.out' takes out its members, which can be read";
  EXPECT_EQ(file_refusal_of("!<arch>\nabc"), refusal);
  EXPECT_EQ(file_refusal_of("!<thin>\nabc"), refusal);
}

TEST(FileImages, a_program_without_device_code_is_refused) {
  const std::string refusal =
      "a.out: an ELF file without device code (section .nv_fatbin or __nv_relfatbin)";
  EXPECT_EQ(file_refusal_of(program_with({".nv_fatbins", kept_file("lz4.fatbin")})), refusal);
  EXPECT_EQ(file_refusal_of(program_with({".nv_fatbin", std::string(16, '\0')})), refusal);
}

TEST(FileImages, of_a_program_may_be_none) {
  const std::string fat_binary = kept_file("lz4.fatbin");
  EXPECT_TRUE(images_of_program(program_with({".data", fat_binary}), "a.out")->empty());
  const std::string with_code = program_with({".nv_fatbin", fat_binary});
  const auto images = images_of_program(with_code, "a.out").value();
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images[0].image.bytes, fat_binary);
  EXPECT_EQ(images[0].where, "a.out: .nv_fatbin: image 0");
  EXPECT_FALSE(images_of_program(fat_binary, "a.out")) << "no program";
  EXPECT_FALSE(images_of_program(program_with({".nv_fatbin", "abcdefgh"}), "a.out"));
}

TEST(FileImages, sections_that_hold_something_else_are_refused) {
  const std::string fat_binary = kept_file("lz4.fatbin");
  EXPECT_EQ(file_refusal_of(program_with({".nv_fatbin", "abcdefgh"})),
            "a.out: .nv_fatbin: image 0: no fat binary at byte 0 of the section");
  EXPECT_EQ(file_refusal_of(program_with({".nv_fatbin", fat_binary + std::string(8, '\0') + "x"})),
            "a.out: .nv_fatbin: image 1: no fat binary at byte 440 of the section");
  EXPECT_EQ(file_refusal_of(program_with({".nv_fatbin", std::string(small_ptx)})),
            "a.out: .nv_fatbin: image 0: no fat binary at byte 0 of the section");
  EXPECT_THAT(file_refusal_of(program_with({".nv_fatbin", fat_binary.substr(0, 400)})),
              HasSubstr("a.out: .nv_fatbin: image 0: a fat binary that states 416 bytes"));
}

TEST(FileImages, sections_without_their_content_are_refused) {
  const std::string fat_binary = kept_file("lz4.fatbin");
  EXPECT_EQ(file_refusal_of(program_with({".nv_fatbin", "gone", SHT_NOBITS})),
            "a.out: .nv_fatbin: the section's content has been taken out of the file");
  EXPECT_THAT(file_refusal_of(program_with(
                  {".nv_fatbin", fat_binary, SHT_PROGBITS, SHF_ALLOC | SHF_COMPRESSED})),
              HasSubstr("a.out: .nv_fatbin: the section is compressed"));
}

TEST(FileImages, files_that_cannot_be_read_or_are_broken_are_refused) {
  EXPECT_THAT(message_of(read_images("/nowhere/a.out")),
              HasSubstr("/nowhere/a.out: cannot be read"));
  EXPECT_EQ(file_refusal_of(""), "a.out: is empty");
  EXPECT_EQ(file_refusal_of("\x7f"
                            "ELF"),
            "a.out: an ELF file that ends in its header");
  EXPECT_EQ(file_refusal_of("hello"), "a.out: text that is not PTX: '.version' was expected first");
}

TEST(ImagesReport, entries_stand_with_target_compression_bytes_flags_and_kernels) {
  EXPECT_EQ(report_of(program_with({".nv_fatbin", kept_file("lz4.fatbin")})),
            "a.out: .nv_fatbin: image 0: fat binary\n"
            "  0.0     PTX           sm_80    lz4                   336 of       436 bytes  64-bit "
            "linux lz4\n"
            "          kernels: _Z7countedPi\n");
  EXPECT_THAT(report_of(kept_file("options.fatbin")),
              HasSubstr("          options:  -maxrregcount=32 \n"));
}

TEST(ImagesReport, cubins_and_texts_are_listed_as_images_of_one_entry) {
  EXPECT_THAT(report_of(kept_file("counted_75.cubin")),
              HasSubstr("  0.0     machine code  sm_75    not compressed       3872 of"));
  EXPECT_THAT(report_of(kept_file("counted_11.8_80.cubin")), HasSubstr("machine code  sm_80 "));
  EXPECT_THAT(report_of(std::string(small_ptx)), HasSubstr("  0.0     PTX           sm_80 "));
}

TEST(ImagesReport, what_cannot_be_read_is_listed_with_the_reason) {
  EXPECT_THAT(report_of(with<char>(kept_file("counted_75.cubin"), EI_ABIVERSION, 9)),
              HasSubstr("  not read: a.out: machine code of ABI 0x41, 9"));
  EXPECT_THAT(report_of(std::string(".version 8.0\n")),
              HasSubstr("  not read: a.out: PTX without"));
  const std::string broken = made_fat_binary({{.content = std::string(small_ptx) + ".entry"}});
  EXPECT_THAT(report_of(broken), HasSubstr("          not read: a.out: entry 0:"));
}

TEST(ImagesReport, json_has_the_same) {
  const Json report = own_json(report_of(kept_file("zstd.fatbin"), true));
  EXPECT_EQ(report["schema"], "demarc.ptx.images/1");
  EXPECT_EQ(report["images"][0]["kind"], "fat binary");
  const Json& entry = report["images"][0]["entries"][2];
  EXPECT_EQ(entry["target"], "sm_90");
  EXPECT_EQ(entry["version"], "9.0");
  EXPECT_EQ(entry["content_bytes"], 436);
  EXPECT_EQ(entry["kernels"], Json::array({"_Z7countedPi"}));
  EXPECT_FALSE(report["images"][0]["entries"][0].contains("kernels"));
}

TEST(ExtractPtx, every_ptx_becomes_a_file_that_names_image_entry_and_target) {
  const auto folder = demarc::test::fresh_folder("extract") / "made" / "here";
  const std::string both = kept_file("zstd.fatbin") + kept_file("ptx_only.fatbin");
  const auto file = images_of(program_with({".nv_fatbin", both}), "some/app");
  ASSERT_TRUE(file) << message_of(file);
  const auto written = extract_ptx(*file, folder);
  ASSERT_TRUE(written) << message_of(written);
  EXPECT_EQ(*written, (std::vector<std::filesystem::path>{
                          folder / "app.0.2.sm_90.ptx", folder / "app.1.0.sm_80.ptx",
                          folder / "app.1.1.sm_90a.ptx", folder / "app.1.2.sm_100f.ptx"}));
  EXPECT_THAT(read_file(written->at(2)).value(), HasSubstr(".target sm_90a\n"));
}

TEST(ExtractPtx, a_file_without_ptx_is_an_error) {
  const auto folder = demarc::test::fresh_folder("extract");
  const auto file = images_of(kept_file("elf_only.fatbin"), "f");
  EXPECT_EQ(message_of(extract_ptx(*file, folder)),
            "f: holds no PTX, only machine code; 'demarc ptx f --list' lists it");
  const auto cubin = images_of(kept_file("counted_90.cubin"), "f");
  EXPECT_NE(message_of(extract_ptx(*cubin, folder)), "");
}

TEST(ExtractPtx, ptx_that_cannot_be_read_or_written_is_an_error) {
  const auto folder = demarc::test::fresh_folder("extract");
  const auto unknown =
      images_of(made_fat_binary({{.flags = 0x51, .content = std::string(small_ptx)}}), "f");
  EXPECT_THAT(message_of(extract_ptx(*unknown, folder)), HasSubstr("has flag 0x40"));
  const auto broken = images_of(made_fat_binary({{.content = "x"}}) + "", "f");
  EXPECT_FALSE(extract_ptx(*broken, folder));
  const auto good = images_of(kept_file("lz4.fatbin"), "f");
  EXPECT_THAT(message_of(extract_ptx(*good, "/proc/demarc")),
              HasSubstr("/proc/demarc: cannot be made"));
  ASSERT_TRUE(std::filesystem::create_directory(folder / "f.0.0.sm_80.ptx"));
  EXPECT_FALSE(extract_ptx(*good, folder));
}

}  // namespace
}  // namespace demarc::fatbin::test
