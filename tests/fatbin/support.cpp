// Makes fat binaries and ELF files, and puts bytes where the next page cannot be read.
#include "support.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "demarc/base/files.hpp"
#include "formats.hpp"
#include "paths.hpp"

namespace demarc::fatbin::test {
namespace {

template <class T>
void append_bytes(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string kept_file(std::string_view name) {
  const auto path = demarc::test::source_dir() / "tests" / "fatbin" / "files" / name;
  auto content = read_file(path);
  EXPECT_TRUE(content) << message_of(content);
  return content ? std::move(*content) : std::string();
}

std::string made_fat_binary(const std::vector<MadeEntry>& entries) {
  std::string all;
  for (const MadeEntry& entry : entries) {
    EntryHeader header{};
    header.kind = entry.kind;
    header.version = 0x101;
    header.header_bytes =
        static_cast<std::uint32_t>(sizeof header + sizeof(OptionsHeader) + entry.options.size());
    header.payload_bytes = entry.content.size();
    header.options_offset = sizeof header;
    header.sm = entry.sm;
    header.flags = entry.flags;
    append_bytes(all, header);
    append_bytes(all, OptionsHeader{sizeof header + sizeof(OptionsHeader),
                                    static_cast<std::uint32_t>(entry.options.size())});
    all += entry.options + entry.content;
  }
  std::string made;
  append_bytes(made, FatBinaryHeader{0xba55ed50, 1, sizeof(FatBinaryHeader), all.size()});
  return made + all;
}

std::string made_elf(std::uint16_t machine, const std::vector<MadeSection>& sections) {
  std::string names(1, '\0');
  std::string contents;
  std::vector<Elf64_Shdr> headers(1);
  const auto add = [&](const MadeSection& section, std::uint64_t name) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(name);
    header.sh_type = section.type;
    header.sh_flags = section.flags;
    header.sh_offset = sizeof(Elf64_Ehdr) + contents.size();
    header.sh_size = section.content.size();
    headers.push_back(header);
    if (section.type != SHT_NOBITS) contents += section.content;
  };
  for (const MadeSection& section : sections) {
    add(section, names.size());
    names += section.name + '\0';
  }
  const auto own_name = names.size();
  names += std::string(".shstrtab") + '\0';
  add({".shstrtab", names, SHT_STRTAB}, own_name);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, elf_magic.data(), elf_magic.size());
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = machine;
  header.e_shoff = sizeof header + contents.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(headers.size());
  header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  std::string made;
  append_bytes(made, header);
  made += contents;
  for (const Elf64_Shdr& section : headers) append_bytes(made, section);
  return made;
}

Guarded::Guarded(std::string_view bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t readable = (bytes.size() + page - 1) / page * page;
  mapped_ = readable + page;
  pages_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages_ == MAP_FAILED) throw std::bad_alloc();
  char* const end = static_cast<char*>(pages_) + readable;
  std::memcpy(end - bytes.size(), bytes.data(), bytes.size());
  ::mprotect(end, page, PROT_NONE);
  at_ = end - bytes.size();
}

Guarded::~Guarded() {
  ::munmap(pages_, mapped_);
}

}  // namespace demarc::fatbin::test
