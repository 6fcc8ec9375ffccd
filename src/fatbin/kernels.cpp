// Finds kernels of machine code: ptxas notes in their symbols what they are.
#include "demarc/fatbin/kernels.hpp"

#include <algorithm>

#include "demarc/fatbin/entry.hpp"
#include "demarc/fatbin/target.hpp"
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

Result<bool> has_ptx(std::string_view fat_binary, std::uint32_t sm, std::string_view name) {
  DEMARC_TRY(const std::vector<Entry> entries, read_entries(fat_binary, name));
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.kind == EntryKind::ptx && runs_ptx(sm, entry.target);
  });
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

// What a program was linked from has the PTX of its parts.
Result<bool> is_machine_code_alone(const Image& image, std::uint32_t sm, std::string_view name) {
  if (image.kind == ImageKind::ptx) return false;
  std::vector<std::string_view> parts(image.prelinked.begin(), image.prelinked.end());
  if (image.kind == ImageKind::fat_binary) parts.push_back(image.bytes);
  for (const std::string_view part : parts) {
    DEMARC_TRY(const bool found, has_ptx(part, sm, name));
    if (found) return false;
  }
  DEMARC_TRY(const auto kernels, machine_code_kernels(image, name));
  return !kernels.empty();
}

Result<bool> has_machine_code(const Image& image, std::uint32_t sm, std::string_view name) {
  if (image.kind != ImageKind::fat_binary) return image.kind == ImageKind::cubin;
  DEMARC_TRY(const std::vector<Entry> entries, read_entries(image.bytes, name));
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.kind == EntryKind::cubin && runs_machine_code(sm, entry.target);
  });
}

}  // namespace demarc::fatbin
