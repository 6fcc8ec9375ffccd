// __managed__ variables: found where they are, "none" only where there are none.
#include "demarc/fatbin/managed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bytes.hpp"
#include "demarc/fatbin/best_ptx.hpp"
#include "demarc/ptx/parser.hpp"
#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<std::vector<std::string>> managed_in(const std::string& bytes) {
  DEMARC_TRY(const Image image, image_in(bytes, "f"));
  return managed_variables(image, "f");
}

std::vector<std::string> names_in(const std::string& bytes) {
  const auto names = managed_in(bytes);
  EXPECT_TRUE(names) << message_of(names);
  return names ? *names : std::vector<std::string>{"not read"};
}

std::string ptx_with(std::string_view line) {
  return fmt::format("{}{}\n", small_ptx, line);
}

// A cubin of that content, as ptxas 13.0 marks them.
std::string made_cubin(const std::vector<MadeSection>& sections) {
  std::string made = made_elf(EM_CUDA, sections);
  made[EI_OSABI] = 0x41;
  made[EI_ABIVERSION] = 8;
  return made;
}

// A symbol table of one symbol whose name is at `name`, and that has `other` as st_other.
MadeSection symbol_table(std::uint32_t name, unsigned char other) {
  Elf64_Sym symbol{};
  symbol.st_name = name;
  symbol.st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);
  symbol.st_other = other;
  return {".symtab", {reinterpret_cast<const char*>(&symbol), sizeof symbol}, SHT_SYMTAB};
}

std::size_t section_headers_at(const std::string& elf) {
  return *field<std::uint64_t>(elf, offsetof(Elf64_Ehdr, e_shoff));
}

// That cubin with its symbol table (section 1) linked to the names in section 2.
std::string linked(const std::string& cubin, std::uint32_t names, std::uint64_t entry_bytes) {
  const auto at = section_headers_at(cubin) + sizeof(Elf64_Shdr);
  return with(with(cubin, at + offsetof(Elf64_Shdr, sh_link), names),
              at + offsetof(Elf64_Shdr, sh_entsize), entry_bytes);
}

// The example of docs/fatbin.md.
Result<fatbin::PtxCode> unmanaged_ptx_of(const void* pointer) {
  DEMARC_TRY(const fatbin::Image image, fatbin::image_at(pointer, "cuModuleLoadData"));
  DEMARC_TRY(const auto managed, fatbin::managed_variables(image, "cuModuleLoadData"));
  if (!managed.empty()) return invalid_input("managed: {}", managed.front());
  DEMARC_TRY(const fatbin::PtxCode code, fatbin::best_ptx(image, 90, "cuModuleLoadData"));
  return code;
}

TEST(Managed, the_example_of_the_documentation_refuses_managed_variables_and_gives_ptx) {
  EXPECT_EQ(name(unmanaged_ptx_of(kept_file("zstd.fatbin").data())->target), "sm_90");
  EXPECT_EQ(message_of(unmanaged_ptx_of(kept_file("managed.fatbin").data())),
            "managed: managed_table");
}

TEST(Managed, machine_code_says_so_by_a_bit_of_the_symbol_on_every_target) {
  for (const char* file : {"managed_75.cubin", "managed_90.cubin", "managed_100.cubin",
                           "managed_rdc_90.cubin", "managed_11.8_80.cubin"}) {
    EXPECT_THAT(names_in(kept_file(file)), ElementsAre("managed_table", "managed_total")) << file;
  }
}

TEST(Managed, machine_code_without_such_variables_has_none) {
  for (const char* file :
       {"counted_75.cubin", "counted_90.cubin", "counted_100.cubin", "counted_11.8_80.cubin"}) {
    EXPECT_THAT(names_in(kept_file(file)), IsEmpty()) << file;
  }
}

TEST(Managed, fat_binaries_have_those_of_all_their_entries) {
  EXPECT_THAT(names_in(kept_file("managed.fatbin")), ElementsAre("managed_table", "managed_total"));
  EXPECT_THAT(names_in(kept_file("managed_elf.fatbin")),
              ElementsAre("managed_table", "managed_total"));
  EXPECT_THAT(names_in(kept_file("zstd.fatbin")), IsEmpty());
  EXPECT_THAT(names_in(kept_file("ptx_only.fatbin")), IsEmpty());
  const std::string mixed = made_fat_binary(
      {{.content = ptx_with(".global .attribute(.managed) .u32 first;")},
       {.sm = 90, .content = ptx_with(".global .attribute(.managed) .u32 second;")}});
  EXPECT_THAT(names_in(mixed), ElementsAre("first", "second"));
}

TEST(Managed, what_a_program_was_linked_from_counts) {
  const std::string linked_from = kept_file("managed_elf.fatbin");
  const std::string bytes = kept_file("elf_only.fatbin");
  Image image = *image_in(bytes, "f");
  EXPECT_THAT(managed_variables(image, "f").value(), IsEmpty());
  image.prelinked.push_back(linked_from);
  EXPECT_THAT(managed_variables(image, "f").value(), ElementsAre("managed_table", "managed_total"));
  const std::string sealed = kept_file("lto.fatbin");
  image.prelinked.front() = sealed;
  EXPECT_FALSE(managed_variables(image, "f"));
}

TEST(Managed, ptx_says_so_by_an_attribute) {
  EXPECT_THAT(names_in(ptx_with(".global .attribute(.managed) .align 4 .u32 total;")),
              ElementsAre("total"));
  EXPECT_THAT(names_in(ptx_with(".extern .global .attribute( .managed ) .u32 total;")),
              ElementsAre("total"));
  EXPECT_THAT(names_in(ptx_with(".global .attribute(.unified(1,2), .managed) .u32 total;")),
              ElementsAre("total"));
  EXPECT_THAT(names_in(ptx_with(".global .u32 managed;")), IsEmpty());
  EXPECT_THAT(names_in(ptx_with(".global .attribute(.unified(1,2)) .u32 managed;")), IsEmpty());
}

TEST(Managed, attributes_that_only_contain_the_word_are_others) {
  ptx::Module module;
  const auto names_of = [&](std::string_view attributes) {
    module.variables.assign(1, {});
    module.variables[0].name = "v";
    module.variables[0].attributes = attributes;
    return managed_variables(module);
  };
  EXPECT_THAT(names_of(".attribute(.managed)"), ElementsAre("v"));
  EXPECT_THAT(names_of(".attribute(.managed_else, .managed)"), ElementsAre("v"));
  EXPECT_THAT(names_of("managed"), ElementsAre("v"));
  EXPECT_THAT(names_of(".attribute(.unmanaged)"), IsEmpty());
  EXPECT_THAT(names_of(".attribute(.managed2)"), IsEmpty());
  EXPECT_THAT(names_of(".attribute(.managed_else)"), IsEmpty());
  EXPECT_THAT(names_of(".attribute($managed)"), IsEmpty());
  EXPECT_THAT(names_of(".attribute(.Amanaged, Zmanaged, zmanaged, 9managed)"), IsEmpty());
}

TEST(Managed, variables_declared_in_functions_count) {
  ptx::Module module;
  module.functions.resize(1);
  module.functions[0].body.variables.resize(1);
  module.functions[0].body.variables[0].name = "inner";
  module.functions[0].body.variables[0].attributes = ".attribute(.managed)";
  EXPECT_THAT(managed_variables(module), ElementsAre("inner"));
}

TEST(Managed, ptx_that_is_malformed_is_an_error) {
  EXPECT_THAT(message_of(managed_in(ptx_with(".global .attribute(.managed"))),
              HasSubstr("malformed"));
}

TEST(Managed, what_cannot_be_read_is_an_error) {
  EXPECT_EQ(message_of(managed_in(kept_file("lto.fatbin"))),
            "f: entry 0: is LTO: it is unknown whether it has managed variables");
  EXPECT_EQ(message_of(managed_in(made_fat_binary({{.kind = 16, .content = "abc"}}))),
            "f: entry 0: is unknown kind 16: it is unknown whether it has managed variables");
  EXPECT_EQ(message_of(managed_in(made_fat_binary({{.flags = 0x51, .content = "abc"}}))),
            "f: entry 0: has flag 0x40, which is not known here: it is not read");
  EXPECT_EQ(message_of(managed_in(made_fat_binary({{.kind = 2, .content = "abc"}}))),
            "f: entry 0: is not an ELF file");
  EXPECT_EQ(
      message_of(managed_in(made_fat_binary({{.kind = 2, .content = made_elf(EM_X86_64, {})}}))),
      "f: entry 0: is not machine code of a GPU, but an ELF file of machine 62");
}

TEST(Managed, machine_code_of_an_abi_that_is_not_known_is_an_error) {
  const std::string bytes = kept_file("counted_90.cubin");
  EXPECT_EQ(message_of(managed_in(with<char>(bytes, EI_ABIVERSION, 9))),
            "f: machine code of ABI 0x41, 9, which is not known here; known are 0x33, 7 and 0x41, "
            "8");
  EXPECT_NE(message_of(managed_in(with<char>(bytes, EI_OSABI, 0x33))), "");
}

TEST(Managed, machine_code_without_a_symbol_table_is_an_error) {
  EXPECT_EQ(message_of(managed_in(made_cubin({}))),
            "f: machine code without a symbol table: what it holds is not known");
}

TEST(Managed, a_symbol_table_of_another_form_is_an_error) {
  const std::string names("\0total", 7);
  const std::string cubin = made_cubin({symbol_table(1, 4), {".strtab", names, SHT_STRTAB}});
  EXPECT_THAT(names_in(linked(cubin, 2, sizeof(Elf64_Sym))), ElementsAre("total"));
  EXPECT_EQ(message_of(managed_in(linked(cubin, 2, 16))),
            "f: its symbol table has 24 bytes in entries of 16; 24 are right");
  EXPECT_EQ(message_of(managed_in(linked(cubin, 4, sizeof(Elf64_Sym)))),
            "f: its symbol table names a section that is not there");
  EXPECT_NE(message_of(managed_in(linked(cubin, ~0U, sizeof(Elf64_Sym)))), "");
  MadeSection longer = symbol_table(1, 4);
  longer.content += '\0';
  EXPECT_EQ(message_of(managed_in(linked(made_cubin({longer, {".strtab", names, SHT_STRTAB}}), 2,
                                         sizeof(Elf64_Sym)))),
            "f: its symbol table has 25 bytes in entries of 24; 24 are right");
}

TEST(Managed, a_managed_symbol_whose_name_has_no_end_is_an_error) {
  const MadeSection unended{".strtab", std::string("\0tot", 4), SHT_STRTAB};
  const auto cubin = [&](std::uint32_t name, unsigned char other) {
    return linked(made_cubin({symbol_table(name, other), unended}), 2, sizeof(Elf64_Sym));
  };
  EXPECT_EQ(message_of(managed_in(cubin(1, 4))), "f: a symbol whose name has no end");
  EXPECT_EQ(message_of(managed_in(cubin(1000, 4))), "f: a symbol whose name has no end");
  EXPECT_THAT(names_in(cubin(1, 0xa0)), IsEmpty());
}

}  // namespace
}  // namespace demarc::fatbin::test
