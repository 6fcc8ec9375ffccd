// What a block of bytes is, and where it ends.
#include <gtest/gtest.h>

#include "formats.hpp"
#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

std::string bytes_of(const Wrapper& wrapper) {
  return {reinterpret_cast<const char*>(&wrapper), sizeof wrapper};
}

std::string refusal_at(std::string_view bytes) {
  const Guarded memory(bytes);
  return message_of(image_at(memory.at(), "module"));
}

void expect_found_in_memory(std::string_view bytes, ImageKind kind, std::size_t size) {
  const Guarded memory(bytes);
  const auto image = image_at(memory.at(), "module");
  ASSERT_TRUE(image) << message_of(image);
  EXPECT_EQ(image->kind, kind);
  EXPECT_EQ(image->bytes.data(), memory.at());
  EXPECT_EQ(image->bytes.size(), size);
}

TEST(ImageInMemory, a_cubin_ends_with_the_last_thing_that_its_headers_name) {
  for (const char* file :
       {"counted_75.cubin", "counted_90.cubin", "counted_100.cubin", "counted_11.8_80.cubin"}) {
    const std::string bytes = kept_file(file);
    expect_found_in_memory(bytes, ImageKind::cubin, bytes.size());
  }
}

TEST(ImageInMemory, a_fat_binary_ends_where_its_header_says) {
  for (const char* file : {"zstd.fatbin", "lz4.fatbin", "none.fatbin", "11.8.fatbin"}) {
    const std::string bytes = kept_file(file);
    expect_found_in_memory(bytes, ImageKind::fat_binary, bytes.size());
  }
}

TEST(ImageInMemory, ptx_ends_in_front_of_its_nul) {
  const std::string text(small_ptx);
  expect_found_in_memory(text + '\0', ImageKind::ptx, text.size());
  expect_found_in_memory(text + '\0' + "more", ImageKind::ptx, text.size());
}

TEST(ImageInMemory, comments_of_both_forms_may_stand_in_front_of_ptx) {
  for (const char* head : {"\n\t\v\f\r ", "//\n", "/**/", "/* \xc3\xa9 * / */\n// x\n"}) {
    const std::string text = std::string(head) + ".version 8.0\n";
    expect_found_in_memory(text + '\0', ImageKind::ptx, text.size());
  }
}

TEST(ImageInMemory, a_null_pointer_is_refused) {
  EXPECT_EQ(message_of(image_at(nullptr, "module")), "module: no image at all: a null pointer");
}

TEST(ImageInMemory, text_without_version_is_refused_within_its_bytes) {
  for (const char* text : {"", "x", "/", "//", "/* .version", ".versio", "// .version 8.0",
                           "\x7f"
                           "EL"}) {
    EXPECT_NE(refusal_at(std::string(text) + '\0'), "") << text;
  }
  EXPECT_EQ(refusal_at(std::string("hello") + '\0'),
            "module: text that is not PTX: '.version' was expected first");
}

TEST(ImageInMemory, the_first_byte_that_no_text_has_ends_the_reading) {
  EXPECT_EQ(refusal_at("\x01"),
            "module: byte 0 is 0x01: neither PTX text nor a cubin nor a fat binary");
  EXPECT_EQ(refusal_at(".version 8.0\n\x02"),
            "module: byte 13 is 0x02: neither PTX text nor a cubin nor a fat binary");
}

TEST(ImageInMemory, a_wrapper_leads_to_its_fat_binary) {
  const std::string bytes = kept_file("zstd.fatbin");
  const Guarded fat_binary(bytes);
  const Guarded wrapper(
      bytes_of({0x466243b1, 1, static_cast<const char*>(fat_binary.at()), nullptr}));
  const auto image = image_at(wrapper.at(), "module");
  ASSERT_TRUE(image) << message_of(image);
  EXPECT_EQ(image->kind, ImageKind::fat_binary);
  EXPECT_EQ(image->bytes.data(), fat_binary.at());
  EXPECT_EQ(image->bytes.size(), bytes.size());
  EXPECT_TRUE(image->prelinked.empty());
}

TEST(ImageInMemory, a_wrapper_of_a_linked_program_has_what_it_was_linked_from) {
  const std::string linked = kept_file("elf_only.fatbin");
  const std::string first = kept_file("lz4.fatbin");
  const std::string second = kept_file("none.fatbin");
  const char* const list[] = {first.data(), second.data(), nullptr};
  const Guarded addresses({reinterpret_cast<const char*>(list), sizeof list});
  const Guarded wrapper(bytes_of({0x466243b1, 2, linked.data(), addresses.at()}));
  const auto image = image_at(wrapper.at(), "module");
  ASSERT_TRUE(image) << message_of(image);
  EXPECT_EQ(image->bytes, linked);
  EXPECT_EQ(image->prelinked, (std::vector<std::string_view>{first, second}));
  const Guarded without(bytes_of({0x466243b1, 2, linked.data(), nullptr}));
  const auto alone = image_at(without.at(), "module");
  ASSERT_TRUE(alone) << message_of(alone);
  EXPECT_TRUE(alone->prelinked.empty());
}

TEST(ImageInMemory, wrappers_that_lead_elsewhere_are_refused) {
  const std::string fat_binary = kept_file("lz4.fatbin");
  const std::string text(small_ptx);
  EXPECT_EQ(refusal_at(bytes_of({0x466243b1, 3, fat_binary.data(), nullptr})),
            "module: a wrapper of version 3; known are 1 and 2");
  EXPECT_EQ(refusal_at(bytes_of({0x466243b1, 0, fat_binary.data(), nullptr})),
            "module: a wrapper of version 0; known are 1 and 2");
  EXPECT_EQ(refusal_at(bytes_of({0x466243b1, 1, nullptr, nullptr})),
            "module: a wrapper that points to nothing");
  EXPECT_EQ(refusal_at(bytes_of({0x466243b1, 1, text.data(), nullptr})),
            "module: a wrapper that points to something else than a fat binary");
  const char* const list[] = {fat_binary.data(), text.data(), nullptr};
  EXPECT_EQ(refusal_at(bytes_of({0x466243b1, 2, fat_binary.data(), list})),
            "module: a wrapper whose linked binary 1 is not a fat binary");
  const std::string newer = with<std::uint16_t>(fat_binary, 4, 2);
  EXPECT_NE(refusal_at(bytes_of({0x466243b1, 1, newer.data(), nullptr})), "");
  const char* const with_newer[] = {newer.data(), nullptr};
  EXPECT_NE(refusal_at(bytes_of({0x466243b1, 2, fat_binary.data(), with_newer})), "");
}

TEST(ImageInMemory, a_list_of_linked_binaries_without_end_is_refused) {
  const std::string fat_binary = kept_file("lz4.fatbin");
  std::vector<const char*> list(max_prelinked + 1, fat_binary.data());
  EXPECT_EQ(refusal_at(bytes_of({0x466243b1, 2, fat_binary.data(), list.data()})),
            "module: a wrapper with more than 16384 fat binaries");
  list.back() = nullptr;
  EXPECT_EQ(refusal_at(bytes_of({0x466243b1, 2, fat_binary.data(), list.data()})), "");
}

TEST(ImageInMemory, a_fat_binary_larger_than_any_is_refused) {
  const std::string bytes = kept_file("lz4.fatbin");
  EXPECT_NE(refusal_at(with(bytes, 8, max_image_bytes - 15)), "");
  EXPECT_NE(refusal_at(with(bytes, 8, ~std::uint64_t{0})), "");
  EXPECT_EQ(refusal_at(with(bytes, 8, max_image_bytes - 16)),
            "module: has no end within 2147483648 bytes");
  EXPECT_EQ(refusal_at(with(bytes, 8, max_image_bytes - 17)), "");
}

TEST(ImageInFile, each_kind_is_told_by_its_first_bytes) {
  EXPECT_EQ(name(image_in(kept_file("zstd.fatbin"), "f")->kind), "fat binary");
  EXPECT_EQ(name(image_in(kept_file("counted_90.cubin"), "f")->kind), "cubin");
  EXPECT_EQ(name(image_in(small_ptx, "f")->kind), "PTX");
}

TEST(ImageInFile, ptx_needs_no_nul_and_may_have_many) {
  EXPECT_EQ(image_in(small_ptx, "f")->bytes, small_ptx);
  const std::string padded = std::string(small_ptx) + std::string(7, '\0');
  EXPECT_EQ(image_in(padded, "f")->bytes, small_ptx);
}

TEST(ImageInFile, ptx_that_goes_on_behind_a_nul_is_refused) {
  const std::string text = std::string(small_ptx) + '\0' + ".visible";
  EXPECT_EQ(message_of(image_in(text, "f")),
            fmt::format("f: PTX text that goes on behind a NUL (byte {})", small_ptx.size()));
}

TEST(ImageInFile, no_bytes_and_a_wrapper_are_refused) {
  EXPECT_EQ(message_of(image_in("", "f")), "f: is empty");
  EXPECT_NE(message_of(image_in(bytes_of({0x466243b1, 1, nullptr, nullptr}), "f"))
                .find("a file has none behind it"),
            std::string::npos);
}

TEST(ImageInFile, fat_binaries_of_another_form_are_refused) {
  const std::string bytes = kept_file("lz4.fatbin");
  EXPECT_EQ(message_of(image_in(bytes.substr(0, 15), "f")),
            "f: a fat binary that ends in its header");
  EXPECT_EQ(message_of(image_in(with<std::uint16_t>(bytes, 4, 2), "f")),
            "f: a fat binary of version 2 with a header of 16 bytes; known is version 1 with 16");
  EXPECT_EQ(message_of(image_in(with<std::uint16_t>(bytes, 6, 24), "f")),
            "f: a fat binary of version 1 with a header of 24 bytes; known is version 1 with 16");
  EXPECT_EQ(message_of(image_in(bytes.substr(0, bytes.size() - 1), "f")),
            "f: a fat binary that states 416 bytes of entries, where 415 can be");
}

TEST(ImageInFile, an_elf_file_of_another_machine_is_refused) {
  const std::string bytes = kept_file("counted_90.cubin");
  const auto machine = offsetof(Elf64_Ehdr, e_machine);
  EXPECT_EQ(message_of(image_in(with<std::uint16_t>(bytes, machine, EM_X86_64), "f")),
            "f: an ELF file of machine 62; device code has machine 190");
}

}  // namespace
}  // namespace demarc::fatbin::test
