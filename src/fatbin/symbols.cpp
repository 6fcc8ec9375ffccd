// Reads the symbol table of a cubin.
#include "symbols.hpp"

#include "bytes.hpp"
#include "elf.hpp"

namespace demarc::fatbin {
namespace {

Result<void> use_table(unsigned char bits, const Elf::Section& table, std::string_view texts,
                       std::string_view name, const UseSymbol& use) {
  if (table.header.sh_entsize != sizeof(Elf64_Sym) ||
      table.content.size() % sizeof(Elf64_Sym) != 0) {
    return invalid_input("{}: its symbol table has {} bytes in entries of {}; {} are right", name,
                         table.content.size(), table.header.sh_entsize, sizeof(Elf64_Sym));
  }
  for (std::size_t at = 0; at < table.content.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = *field<Elf64_Sym>(table.content, at);
    if ((symbol.st_other & bits) != bits) continue;
    const auto end = texts.find('\0', symbol.st_name);
    if (end == std::string_view::npos)
      return invalid_input("{}: a symbol whose name has no end", name);
    use(texts.substr(symbol.st_name, end - symbol.st_name));
  }
  return {};
}

}  // namespace

Result<void> for_each_symbol(unsigned char bits, std::string_view cubin, std::string_view name,
                             const UseSymbol& use) {
  DEMARC_TRY(const Elf elf, Elf::read(cubin, name));
  if (!elf.is_cubin()) {
    return invalid_input("{}: is not machine code of a GPU, but an ELF file of machine {}", name,
                         elf.header().e_machine);
  }
  DEMARC_CHECK(sm_of(elf, name));  // of the ABIs that are known the bits are
  bool found = false;
  for (const Elf::Section& section : elf.sections()) {
    if (section.header.sh_type != SHT_SYMTAB) continue;
    found = true;
    if (section.header.sh_link >= elf.sections().size())
      return invalid_input("{}: its symbol table names a section that is not there", name);
    DEMARC_CHECK(
        use_table(bits, section, elf.sections()[section.header.sh_link].content, name, use));
  }
  if (found) return {};
  return invalid_input("{}: machine code without a symbol table: what it holds is not known", name);
}

Result<void> add_symbols_with(SymbolBit bit, std::string_view cubin, std::string_view name,
                              std::set<std::string>& names) {
  return for_each_symbol(static_cast<unsigned char>(bit), cubin, name,
                         [&](std::string_view symbol) { names.emplace(symbol); });
}

}  // namespace demarc::fatbin
