// Reads machine code and first contents of variables out of the ELF files that ptxas makes.
#include "elf_text.hpp"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace demarc::ptx::test {
namespace {

template <class T>
T read_at(const std::string& file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) {
    throw std::runtime_error("an ELF structure lies outside of the file");
  }
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

}  // namespace

std::map<std::string, std::string> content_sections(const std::string& elf) {
  const auto header = read_at<Elf64_Ehdr>(elf, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    throw std::runtime_error("not a 64-bit ELF file");
  }
  const auto section = [&](std::uint64_t number) {
    return read_at<Elf64_Shdr>(elf, header.e_shoff + number * header.e_shentsize);
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  std::map<std::string, std::string> found;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr row = section(i);
    const std::string name = elf.c_str() + names.sh_offset + row.sh_name;
    const bool is_code = name.rfind(".text", 0) == 0;
    const bool is_data = name == ".nv.global.init" || name == ".nv.constant3";
    if (!is_code && !is_data) continue;
    found[name] = elf.substr(row.sh_offset, row.sh_size);
  }
  return found;
}

}  // namespace demarc::ptx::test
