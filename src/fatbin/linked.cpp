// Reads the program headers and the dynamic table of an ELF file.
#include "demarc/fatbin/linked.hpp"

#include <optional>

#include "bytes.hpp"
#include "elf.hpp"

namespace demarc::fatbin {
namespace {

struct Program {
  std::string_view bytes;
  std::string_view path;
  std::vector<Elf64_Phdr> segments;

  [[nodiscard]] const Elf64_Phdr* segment(Elf64_Word type) const {
    for (const Elf64_Phdr& one : segments) {
      if (one.p_type == type) return &one;
    }
    return nullptr;
  }
  // The text that begins at that byte of the file.
  [[nodiscard]] Result<std::string> text_at(std::uint64_t offset) const {
    const auto end = bytes.find('\0', offset);
    if (end != std::string_view::npos) return std::string(bytes.substr(offset, end - offset));
    return invalid_input("{}: an ELF file with a name at byte {} that does not end in it", path,
                         offset);
  }
  // The byte of the file that is loaded to an address.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t address) const {
    for (const Elf64_Phdr& one : segments) {
      if (one.p_type == PT_LOAD && address >= one.p_vaddr && address - one.p_vaddr < one.p_filesz)
        return one.p_offset + (address - one.p_vaddr);
    }
    return std::nullopt;
  }
};

// Segments and the table are those that Elf::read() has found within the file.
Program program_of(const Elf& elf, std::string_view bytes, std::string_view path) {
  Program program{bytes, path, {}};
  for (std::uint64_t i = 0; elf.header().e_phoff != 0 && i < elf.header().e_phnum; ++i) {
    const auto segment = field<Elf64_Phdr>(bytes, elf.header().e_phoff + i * sizeof(Elf64_Phdr));
    if (segment) program.segments.push_back(*segment);
  }
  return program;
}

Result<std::vector<std::string>> needed_of(const Program& program, const Elf64_Phdr& table) {
  std::vector<std::uint64_t> names;  // where each begins among the names
  std::optional<std::uint64_t> texts;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= table.p_filesz; at += sizeof(Elf64_Dyn)) {
    const auto entry = field<Elf64_Dyn>(program.bytes, table.p_offset + at);
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_NEEDED) names.push_back(entry->d_un.d_val);
    if (entry->d_tag == DT_STRTAB) texts = program.offset_of(entry->d_un.d_ptr);
  }
  if (!names.empty() && !texts) {
    return invalid_input("{}: an ELF file whose names of libraries are not in it", program.path);
  }
  std::vector<std::string> needed;
  for (const std::uint64_t name : names) {
    DEMARC_TRY(std::string text, program.text_at(*texts + name));
    needed.push_back(std::move(text));
  }
  return needed;
}

}  // namespace

Result<Linked> linked_of(std::string_view content, std::string_view path) {
  DEMARC_TRY(const Elf elf, Elf::read(content, path));
  const Program program = program_of(elf, content, path);
  Linked linked;
  linked.machine = elf.header().e_machine;
  if (const Elf64_Phdr* interpreter = program.segment(PT_INTERP)) {
    DEMARC_TRY(linked.interpreter, program.text_at(interpreter->p_offset));
  }
  if (const Elf64_Phdr* table = program.segment(PT_DYNAMIC)) {
    DEMARC_TRY(linked.needed, needed_of(program, *table));
  }
  return linked;
}

}  // namespace demarc::fatbin
