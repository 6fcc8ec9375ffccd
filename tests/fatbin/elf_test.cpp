// ELF files: sections, and headers that lie.
#include "elf.hpp"

#include <gtest/gtest.h>

#include "bytes.hpp"
#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

constexpr std::size_t e_shoff = offsetof(Elf64_Ehdr, e_shoff);

std::string elf_refusal_of(const std::string& bytes) {
  return message_of(Elf::read(bytes, "f"));
}

template <class T>
std::string with_header(const std::string& bytes, std::size_t at, T value) {
  return with(bytes, at, value);
}

// The same with a field of one section's header changed.
template <class T>
std::string with_section(const std::string& bytes, std::size_t section, std::size_t at, T value) {
  const auto headers = *field<std::uint64_t>(bytes, e_shoff);
  return with(bytes, headers + section * sizeof(Elf64_Shdr) + at, value);
}

TEST(ElfFile, sections_have_names_and_contents) {
  const std::string bytes = made_elf(EM_X86_64, {{".one", "abc"}, {".two", "defg"}});
  const auto elf = Elf::read(bytes, "f");
  ASSERT_TRUE(elf) << message_of(elf);
  ASSERT_EQ(elf->sections().size(), 4U);
  EXPECT_EQ(elf->sections()[0].name, "");
  EXPECT_EQ(elf->sections()[1].name, ".one");
  EXPECT_EQ(elf->sections()[1].content, "abc");
  EXPECT_EQ(elf->sections()[2].name, ".two");
  EXPECT_EQ(elf->sections()[2].content, "defg");
  EXPECT_EQ(elf->size(), bytes.size());
  EXPECT_FALSE(elf->is_cubin());
}

TEST(ElfFile, sections_without_bytes_do_not_count_to_the_size) {
  const std::string megabyte(1U << 20U, 'x');
  for (const std::uint32_t type : {8U, 0x70000007U, 0x7000000aU, 0x70000015U}) {
    std::string bytes = made_elf(EM_CUDA, {{".nv.global", "", type}});
    bytes = with_section(bytes, 1, offsetof(Elf64_Shdr, sh_size), megabyte.size());
    const auto elf = Elf::read(bytes + megabyte + megabyte, "f");
    ASSERT_TRUE(elf) << message_of(elf);
    EXPECT_EQ(elf->size(), bytes.size()) << type;
    EXPECT_EQ(elf->sections()[1].content, "");
  }
  // For a CPU's file these types mean nothing of the kind.
  std::string other = made_elf(EM_X86_64, {{".x", "", 0x70000007}});
  other = with_section(other, 1, offsetof(Elf64_Shdr, sh_size), megabyte.size());
  EXPECT_NE(elf_refusal_of(other), "");
}

TEST(ElfFile, what_is_none_or_of_another_class_is_refused) {
  const std::string bytes = made_elf(EM_CUDA, {});
  EXPECT_EQ(elf_refusal_of("abcd"), "f: is not an ELF file");
  EXPECT_EQ(elf_refusal_of(bytes.substr(0, 63)), "f: an ELF file that ends in its header");
  EXPECT_EQ(elf_refusal_of(with_header<char>(bytes, EI_CLASS, ELFCLASS32)),
            "f: an ELF file, but not of 64 bits and little-endian");
  EXPECT_EQ(elf_refusal_of(with_header<char>(bytes, EI_DATA, ELFDATA2MSB)),
            "f: an ELF file, but not of 64 bits and little-endian");
}

TEST(ElfFile, section_headers_that_lie_elsewhere_are_refused) {
  const std::string bytes = made_elf(EM_CUDA, {{".one", "abc"}});
  EXPECT_NE(elf_refusal_of(with_header(bytes, e_shoff, std::uint64_t{bytes.size()})), "");
  EXPECT_NE(elf_refusal_of(with_header(bytes, e_shoff, ~std::uint64_t{0} - 3)), "");
  EXPECT_NE(elf_refusal_of(with_header<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shnum), 4)),
            "");
  EXPECT_EQ(
      elf_refusal_of(with_header<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shentsize), 40)),
      "f: an ELF file whose section headers have 40 bytes; 64 would be right");
}

TEST(ElfFile, a_section_outside_of_the_file_is_refused) {
  const std::string bytes = made_elf(EM_CUDA, {{".one", "abc"}});
  EXPECT_EQ(
      elf_refusal_of(with_section(bytes, 1, offsetof(Elf64_Shdr, sh_size), ~std::uint64_t{0})),
      "f: an ELF file whose section 1 (18446744073709551615 bytes from byte 64) lies outside "
      "of it");
  EXPECT_NE(elf_refusal_of(with_section(bytes, 1, offsetof(Elf64_Shdr, sh_offset),
                                        std::uint64_t{bytes.size() - 2})),
            "");
  EXPECT_EQ(elf_refusal_of(with_section(bytes, 1, offsetof(Elf64_Shdr, sh_offset),
                                        std::uint64_t{bytes.size() - 3})),
            "");
}

TEST(ElfFile, names_that_are_not_there_or_have_no_end_are_refused) {
  const std::string bytes = made_elf(EM_CUDA, {{".one", "abc"}});
  EXPECT_EQ(elf_refusal_of(with_header<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shstrndx), 3)),
            "f: an ELF file whose names are in section 3 of 3");
  EXPECT_EQ(elf_refusal_of(with_section<std::uint32_t>(bytes, 1, 0, 1000)),
            "f: an ELF file with a section whose name has no end");
  const auto unnamed =
      with_header<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shstrndx), SHN_UNDEF);
  const auto elf = Elf::read(unnamed, "f");
  ASSERT_TRUE(elf) << message_of(elf);
  EXPECT_EQ(elf->sections()[1].name, "");
}

TEST(ElfFile, section_0_counts_where_there_are_too_many_for_the_header) {
  std::string bytes = made_elf(EM_CUDA, {{".one", "abc"}});
  bytes = with_header<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shnum), 0);
  bytes = with_header<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shstrndx), SHN_XINDEX);
  bytes = with_section<std::uint32_t>(bytes, 0, offsetof(Elf64_Shdr, sh_link), 2);
  const auto sized = [&](std::uint64_t count) {
    return with_section(bytes, 0, offsetof(Elf64_Shdr, sh_size), count);
  };
  const std::string whole = sized(3);
  const auto elf = Elf::read(whole, "f");
  ASSERT_TRUE(elf) << message_of(elf);
  EXPECT_EQ(elf->sections()[1].name, ".one");
  EXPECT_EQ(elf_refusal_of(sized(std::uint64_t{1} << 60U)),
            "f: an ELF file that claims 1152921504606846976 sections");
  EXPECT_NE(elf_refusal_of(sized(4)), "");
}

TEST(ElfFile, segments_count_to_the_size_and_lie_within) {
  std::string bytes = made_elf(EM_CUDA, {});
  const std::uint64_t own = bytes.size();
  Elf64_Phdr segment{};
  segment.p_offset = 0;
  segment.p_filesz = own + sizeof segment + 10;
  bytes.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  bytes += std::string(10, 'x');
  bytes = with_header(bytes, offsetof(Elf64_Ehdr, e_phoff), own);
  bytes = with_header<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_phnum), 1);
  EXPECT_EQ(elf_refusal_of(bytes),
            "f: an ELF file whose program headers have 0 bytes; 56 would be right");
  bytes = with_header<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_phentsize), sizeof segment);
  const auto elf = Elf::read(bytes, "f");
  ASSERT_TRUE(elf) << message_of(elf);
  EXPECT_EQ(elf->size(), own + sizeof segment + 10);
  EXPECT_NE(elf_refusal_of(bytes.substr(0, bytes.size() - 1)), "");
  EXPECT_NE(elf_refusal_of(with_header<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_phnum), 2)),
            "");
}

TEST(ElfFile, an_elf_file_without_sections_or_segments_is_its_header) {
  std::string bytes = made_elf(EM_CUDA, {});
  bytes = with_header<std::uint64_t>(bytes, e_shoff, 0);
  const auto elf = Elf::read(bytes, "f");
  ASSERT_TRUE(elf) << message_of(elf);
  EXPECT_TRUE(elf->sections().empty());
  EXPECT_EQ(elf->size(), sizeof(Elf64_Ehdr));
}

}  // namespace
}  // namespace demarc::fatbin::test
