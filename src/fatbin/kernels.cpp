// Finds kernels of machine code: ptxas notes in their symbols what they are.
#include "demarc/fatbin/kernels.hpp"

#include "demarc/fatbin/entry.hpp"
#include "symbols.hpp"

namespace demarc::fatbin {
namespace {

using KernelNames = std::set<std::string>;

Result<void> add_kernels(std::string_view fat_binary, std::string_view name, KernelNames& names) {
  DEMARC_TRY(const std::vector<Entry> entries, read_entries(fat_binary, name));
  for (const Entry& entry : entries) {
    if (entry.kind != EntryKind::cubin) continue;
    DEMARC_TRY(const std::string content, content_of(entry));
    DEMARC_CHECK(add_symbols_with(SymbolBit::kernel, content, entry.where, names));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> machine_code_kernels(const Image& image, std::string_view name) {
  KernelNames names;
  if (image.kind == ImageKind::cubin) {
    DEMARC_CHECK(add_symbols_with(SymbolBit::kernel, image.bytes, name, names));
  } else if (image.kind == ImageKind::fat_binary) {
    DEMARC_CHECK(add_kernels(image.bytes, name, names));
  }
  for (const std::string_view linked : image.prelinked)
    DEMARC_CHECK(add_kernels(linked, name, names));
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace demarc::fatbin
