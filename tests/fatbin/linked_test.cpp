// What an ELF file says of its dynamic loader and its libraries.
#include "demarc/fatbin/linked.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t loaded_at = 0x10000;

// An executable whose texts begin at `texts` of the file, as the dynamic table says.
struct MadeProgram {
  std::string loader = "/lib64/ld-linux-x86-64.so.2";
  std::vector<std::string> needed = {"libcudart.so.12", "libc.so.6"};
  std::uint64_t shift_of_names = 0;  // added to where each name lies
  std::uint64_t shift_of_texts = 0;  // added to the address of all names
  bool has_texts = true;
};

template <class T>
void add_bytes(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string made(const MadeProgram& program) {
  std::string texts(1, '\0');
  std::vector<Elf64_Dyn> table;
  const auto entry = [&table](Elf64_Sxword tag, std::uint64_t value) {
    Elf64_Dyn made_entry{};
    made_entry.d_tag = tag;
    made_entry.d_un.d_val = value;
    table.push_back(made_entry);
  };
  for (const std::string& name : program.needed) {
    entry(DT_NEEDED, texts.size() + program.shift_of_names);
    texts += name + '\0';
  }
  constexpr std::uint64_t headers = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
  const std::string loader = program.loader + '\0';
  if (program.has_texts)
    entry(DT_STRTAB, loaded_at + headers + loader.size() + program.shift_of_texts);
  entry(DT_NULL, 0);
  entry(DT_NEEDED, 1);  // behind the end of the table
  const std::uint64_t at_table = headers + loader.size() + texts.size();
  const std::uint64_t size = at_table + table.size() * sizeof(Elf64_Dyn);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_X86_64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 3;
  std::string bytes;
  add_bytes(bytes, header);
  const auto segment = [&bytes](Elf64_Word type, std::uint64_t offset, std::uint64_t length) {
    Elf64_Phdr made_segment{};
    made_segment.p_type = type;
    made_segment.p_offset = offset;
    made_segment.p_vaddr = loaded_at + offset;
    made_segment.p_filesz = length;
    add_bytes(bytes, made_segment);
  };
  segment(PT_LOAD, 0, size);
  segment(PT_INTERP, headers, loader.size());
  segment(PT_DYNAMIC, at_table, table.size() * sizeof(Elf64_Dyn));
  bytes += loader + texts;
  for (const Elf64_Dyn& one : table) add_bytes(bytes, one);
  return bytes;
}

TEST(Linked, programs_name_their_loader_and_their_libraries_in_order) {
  const auto linked = linked_of(made({}), "a.out");
  ASSERT_TRUE(linked) << message_of(linked);
  EXPECT_EQ(linked->machine, EM_X86_64);
  EXPECT_EQ(linked->interpreter, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_THAT(linked->needed, ElementsAre("libcudart.so.12", "libc.so.6"));
}

TEST(Linked, programs_without_a_dynamic_table_need_nothing) {
  const auto linked = linked_of(made_elf(EM_CUDA, {{".text", "code"}}), "a.cubin");
  ASSERT_TRUE(linked) << message_of(linked);
  EXPECT_EQ(linked->machine, EM_CUDA);
  EXPECT_EQ(linked->interpreter, "");
  EXPECT_THAT(linked->needed, IsEmpty());
  EXPECT_THAT(linked_of(made({.needed = {}, .has_texts = false}), "a.out")->needed, IsEmpty());
}

TEST(Linked, headers_behind_those_that_are_counted_are_none) {
  const std::string two = with(made({}), offsetof(Elf64_Ehdr, e_phnum), std::uint16_t{2});
  const auto linked = linked_of(two, "a.out");
  ASSERT_TRUE(linked) << message_of(linked);
  EXPECT_EQ(linked->interpreter, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_THAT(linked->needed, IsEmpty());
}

TEST(Linked, names_that_do_not_lie_in_the_file_are_an_error) {
  EXPECT_THAT(message_of(linked_of(made({.shift_of_names = 1U << 20U}), "a.out")),
              HasSubstr("a.out: an ELF file with a name at byte "));
  const std::string whole = made({});
  const std::uint64_t to_end = whole.size() - whole.find(std::string("\0libcudart", 10));
  for (const MadeProgram& program :
       {MadeProgram{.shift_of_texts = 1U << 20U}, MadeProgram{.shift_of_texts = to_end},
        MadeProgram{.has_texts = false}}) {
    EXPECT_THAT(message_of(linked_of(made(program), "a.out")),
                HasSubstr("a.out: an ELF file whose names of libraries are not in it"));
  }
  EXPECT_THAT(message_of(linked_of("no ELF", "a.out")), HasSubstr("a.out: is not an ELF file"));
}

TEST(Linked, a_text_that_runs_to_the_end_of_the_file_is_an_error) {
  std::string bytes = made({});
  const auto loader = bytes.find("/lib64");
  std::replace(bytes.begin() + static_cast<std::ptrdiff_t>(loader), bytes.end(), '\0', 'x');
  EXPECT_THAT(message_of(linked_of(bytes, "a.out")), HasSubstr("does not end in it"));
}

}  // namespace
}  // namespace demarc::fatbin::test
