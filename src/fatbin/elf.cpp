// Reads headers and sections of ELF files, and checks each against the bytes that are there.
#include "elf.hpp"

#include <algorithm>

#include "bytes.hpp"
#include "formats.hpp"

namespace demarc::fatbin {
namespace {

// What is known of the ELF files that hold machine code. Both say by bit 2 of a symbol's st_other
// that a variable is managed.
struct Abi {
  std::uint8_t os;       // EI_OSABI
  std::uint8_t version;  // EI_ABIVERSION
  unsigned sm_shift;     // shift of the eight bits of e_flags that hold the sm
};
// clang-format off
constexpr Abi abis[] = {
    {0x33, 7, 0},  // ptxas 11.8: sm_75, 80, 86, 90
    {0x41, 8, 8},  // ptxas 13.0: sm_75 to sm_121
};
// clang-format on

// Sections of machine code that take memory on the card and no bytes of the file, as SHT_NOBITS
// does: ptxas gives them types of its own where the code is still to be linked (-rdc=true).
constexpr Elf64_Word without_bytes[] = {
    0x70000007,  // .nv.global
    0x7000000a,  // .nv.shared.<kernel>, .nv_debug.shared
    0x70000015,  // .nv.shared.reserved.0
};

bool has_bytes(const Elf64_Shdr& section, bool is_cubin) {
  if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) return false;
  return !is_cubin || std::ranges::count(without_bytes, section.sh_type) == 0;
}

}  // namespace

Result<Elf> Elf::read(std::string_view bytes, std::string_view name) {
  Elf elf;
  elf.bytes_ = bytes;
  elf.name_ = name;
  if (!begins_with(bytes, elf_magic)) return invalid_input("{}: is not an ELF file", name);
  const auto header = field<Elf64_Ehdr>(bytes, 0);
  if (!header) return invalid_input("{}: an ELF file that ends in its header", name);
  elf.header_ = *header;
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return invalid_input("{}: an ELF file, but not of 64 bits and little-endian", name);
  DEMARC_CHECK(elf.take(0, sizeof *header, "the header"));
  DEMARC_CHECK(elf.read_sections());
  DEMARC_CHECK(elf.read_segments());
  return elf;
}

Result<void> Elf::take(std::uint64_t offset, std::uint64_t length, std::string_view what) {
  if (!fits(offset, length, bytes_.size())) {
    return invalid_input("{}: an ELF file whose {} ({} bytes from byte {}) lies outside of it",
                         name_, what, length, offset);
  }
  size_ = std::max(size_, offset + length);
  return {};
}

// Where there are too many sections for the header, section 0 says how many and which has the
// names.
Result<void> Elf::read_sections() {
  if (header_.e_shoff == 0) return {};
  if (header_.e_shentsize != sizeof(Elf64_Shdr)) {
    return invalid_input("{}: an ELF file whose section headers have {} bytes; {} would be right",
                         name_, header_.e_shentsize, sizeof(Elf64_Shdr));
  }
  DEMARC_CHECK(take(header_.e_shoff, sizeof(Elf64_Shdr), "first section header"));
  const Elf64_Shdr first = *field<Elf64_Shdr>(bytes_, header_.e_shoff);
  const std::uint64_t count = header_.e_shnum != 0 ? header_.e_shnum : first.sh_size;
  const std::uint32_t names = header_.e_shstrndx == SHN_XINDEX ? first.sh_link : header_.e_shstrndx;
  if (count > bytes_.size() / sizeof(Elf64_Shdr))
    return invalid_input("{}: an ELF file that claims {} sections", name_, count);
  DEMARC_CHECK(take(header_.e_shoff, count * sizeof(Elf64_Shdr), "section headers"));
  for (std::uint64_t i = 0; i < count; ++i) {
    Section section;
    section.header = *field<Elf64_Shdr>(bytes_, header_.e_shoff + i * sizeof(Elf64_Shdr));
    const Elf64_Shdr& header = section.header;
    if (has_bytes(header, is_cubin())) {
      DEMARC_CHECK(take(header.sh_offset, header.sh_size, fmt::format("section {}", i)));
      section.content = bytes_.substr(header.sh_offset, header.sh_size);
    }
    sections_.push_back(section);
  }
  return name_sections(names);
}

Result<void> Elf::name_sections(std::uint32_t names) {
  if (names == SHN_UNDEF) return {};
  if (names >= sections_.size()) {
    return invalid_input("{}: an ELF file whose names are in section {} of {}", name_, names,
                         sections_.size());
  }
  const std::string_view text = sections_[names].content;
  for (Section& section : sections_) {
    const auto end = text.find('\0', section.header.sh_name);
    if (end == std::string_view::npos) {
      return invalid_input("{}: an ELF file with a section whose name has no end", name_);
    }
    section.name = text.substr(section.header.sh_name, end - section.header.sh_name);
  }
  return {};
}

Result<void> Elf::read_segments() {
  if (header_.e_phoff == 0) return {};
  if (header_.e_phentsize != sizeof(Elf64_Phdr)) {
    return invalid_input("{}: an ELF file whose program headers have {} bytes; {} would be right",
                         name_, header_.e_phentsize, sizeof(Elf64_Phdr));
  }
  const std::uint64_t count = header_.e_phnum;
  DEMARC_CHECK(take(header_.e_phoff, count * sizeof(Elf64_Phdr), "program headers"));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto segment = *field<Elf64_Phdr>(bytes_, header_.e_phoff + i * sizeof(Elf64_Phdr));
    DEMARC_CHECK(take(segment.p_offset, segment.p_filesz, fmt::format("segment {}", i)));
  }
  return {};
}

Result<std::uint32_t> sm_of(const Elf& cubin, std::string_view name) {
  const Elf64_Ehdr& header = cubin.header();
  for (const Abi& abi : abis) {
    if (header.e_ident[EI_OSABI] == abi.os && header.e_ident[EI_ABIVERSION] == abi.version)
      return header.e_flags >> abi.sm_shift & 0xffU;
  }
  return invalid_input("{}: machine code of ABI {:#x}, {}, which is not known here; known are {}",
                       name, header.e_ident[EI_OSABI], header.e_ident[EI_ABIVERSION],
                       "0x33, 7 and 0x41, 8");
}

}  // namespace demarc::fatbin
