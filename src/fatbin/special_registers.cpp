// Replaces the special registers that machine code reads.
#include "demarc/fatbin/special_registers.hpp"

#include "bytes.hpp"
#include "elf.hpp"

namespace demarc::fatbin {
namespace {

constexpr std::uint32_t first_sm = 70;
constexpr std::size_t instruction_bytes = 16;
constexpr std::size_t register_byte = 9;  // in an instruction
constexpr std::uint16_t opcode_mask = 0xfff;
constexpr std::uint16_t s2r = 0x919;
constexpr std::uint16_t s2ur = 0x9c3;

bool reads(std::string_view instruction, SpecialRegister from) {
  const auto opcode = *field<std::uint16_t>(instruction, 0) & opcode_mask;
  return (opcode == s2r || opcode == s2ur) &&
         *field<std::uint8_t>(instruction, register_byte) == static_cast<std::uint8_t>(from);
}

}  // namespace

Result<std::size_t> replace_special_register(std::string& cubin, SpecialRegister from,
                                             SpecialRegister to, std::string_view name) {
  DEMARC_TRY(const Elf elf, Elf::read(cubin, name));
  if (!elf.is_cubin()) return invalid_input("{}: an ELF file, but not one of a GPU", name);
  DEMARC_TRY(const std::uint32_t sm, sm_of(elf, name));
  if (sm < first_sm) {
    return invalid_input(
        "{}: machine code for sm_{}; its special registers are known from sm_{} on", name, sm,
        first_sm);
  }
  std::size_t replaced = 0;
  for (const Elf::Section& section : elf.sections()) {
    if ((section.header.sh_flags & SHF_EXECINSTR) == 0) continue;
    const auto begin = static_cast<std::size_t>(section.content.data() - cubin.data());
    for (std::size_t at = 0; at + instruction_bytes <= section.content.size();
         at += instruction_bytes) {
      if (!reads(section.content.substr(at, instruction_bytes), from)) continue;
      cubin[begin + at + register_byte] = static_cast<char>(to);
      ++replaced;
    }
  }
  return replaced;
}

}  // namespace demarc::fatbin
