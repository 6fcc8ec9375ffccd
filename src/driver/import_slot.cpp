// Reads the tables by which the dynamic linker has filled in the imports of a library.
#include "demarc/driver/import_slot.hpp"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

namespace demarc::cuda {
namespace {

struct Search {
  std::uintptr_t inside;
  std::string_view function;
  bool found_library = false;
  const void** slot = nullptr;
  bool read_only = false;
};

struct Imports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> calls;   // functions that are called by name
  std::span<const ElfW(Rela)> others;  // whose address is taken, too
};

template <class T>
const T* at(std::uintptr_t address) {
  return reinterpret_cast<const T*>(address);  // NOLINT: the linker's tables hold addresses
}

Imports imports_of(const ElfW(Dyn) * entry) {
  Imports imports;
  const ElfW(Rela)* calls = nullptr;
  const ElfW(Rela)* others = nullptr;
  std::size_t call_bytes = 0;
  std::size_t other_bytes = 0;
  for (; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        imports.symbols = at<ElfW(Sym)>(entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        imports.names = at<char>(entry->d_un.d_ptr);
        break;
      case DT_JMPREL:
        calls = at<ElfW(Rela)>(entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        call_bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        others = at<ElfW(Rela)>(entry->d_un.d_ptr);
        break;
      case DT_RELASZ:
        other_bytes = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (calls != nullptr) imports.calls = {calls, call_bytes / sizeof *calls};
  if (others != nullptr) imports.others = {others, other_bytes / sizeof *others};
  return imports;
}

const void** slot_in(const Imports& imports, std::uintptr_t base, std::string_view function) {
  if (imports.symbols == nullptr || imports.names == nullptr) return nullptr;
  for (const auto entries : {imports.calls, imports.others}) {
    for (const ElfW(Rela) & entry : entries) {
      const auto type = ELF64_R_TYPE(entry.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      const ElfW(Sym)& symbol = imports.symbols[ELF64_R_SYM(entry.r_info)];
      if (imports.names + symbol.st_name != function) continue;
      return reinterpret_cast<const void**>(base + entry.r_offset);  // NOLINT
    }
  }
  return nullptr;
}

int look_at(dl_phdr_info* info, std::size_t /*bytes*/, void* user) {
  auto& search = *static_cast<Search*>(user);
  const std::span<const ElfW(Phdr)> parts(info->dlpi_phdr, info->dlpi_phnum);
  const std::uintptr_t base = info->dlpi_addr;
  const auto holds = [&](const ElfW(Phdr) & part, std::uintptr_t address) {
    return address - (base + part.p_vaddr) < part.p_memsz;
  };
  search.found_library = std::any_of(parts.begin(), parts.end(), [&](const ElfW(Phdr) & part) {
    return part.p_type == PT_LOAD && holds(part, search.inside);
  });
  if (!search.found_library) return 0;
  for (const ElfW(Phdr) & part : parts) {
    if (part.p_type != PT_DYNAMIC) continue;
    search.slot = slot_in(imports_of(at<ElfW(Dyn)>(base + part.p_vaddr)), base, search.function);
  }
  search.read_only = std::any_of(parts.begin(), parts.end(), [&](const ElfW(Phdr) & part) {
    return part.p_type == PT_GNU_RELRO &&
           holds(part, reinterpret_cast<std::uintptr_t>(search.slot));
  });
  return 1;
}

}  // namespace

Result<ImportSlot> ImportSlot::find(const void* inside, const char* function) {
  Search search{reinterpret_cast<std::uintptr_t>(inside), function};
  ::dl_iterate_phdr(&look_at, &search);
  if (search.slot != nullptr) return ImportSlot(search.slot, search.read_only);
  return missing_capability(
      "{} '{}'",
      search.found_library ? "the library imports no function" : "no library was found for",
      function);
}

Result<void> ImportSlot::set(const void* function) const {
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto page = reinterpret_cast<std::uintptr_t>(slot_) / page_bytes * page_bytes;
  void* const first = reinterpret_cast<void*>(page);  // NOLINT
  if (read_only_ && ::mprotect(first, page_bytes, PROT_READ | PROT_WRITE) != 0) {
    return missing_capability("an import of a library cannot be changed: {}", std::strerror(errno));
  }
  *slot_ = function;
  if (read_only_) ::mprotect(first, page_bytes, PROT_READ);
  return {};
}

}  // namespace demarc::cuda
