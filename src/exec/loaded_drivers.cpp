// Finds the loaded libraries of a process in /proc/PID/maps, and their names in its memory.
#include "loaded_drivers.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "demarc/base/files.hpp"
#include "process_files.hpp"

namespace demarc::cuda {
namespace {

// One library as the linker loaded it: mappings of its file, the first of which begins with the
// file's header.
struct LoadedLibrary {
  std::string path;
  std::uint64_t base{};
  bool has_code = false;  // else a process that reads the file has mapped it
};

std::vector<LoadedLibrary> loaded_libraries(std::istream& maps) {
  std::vector<LoadedLibrary> all;
  std::map<std::string, std::size_t> last_of;  // by device and number of the file
  for (std::string line; std::getline(maps, line);) {
    // "7f00-7f01 r-xp 00001000 fd:01 1234    /usr/lib/libcuda.so.1"
    std::istringstream fields(line);
    std::uint64_t begin{};
    std::uint64_t offset{};
    std::string end, access, device, number, path;
    fields >> std::hex >> begin >> end >> access >> offset >> device >> number >> std::ws;
    std::getline(fields, path);
    if (path.empty()) continue;
    const auto [last, is_new] =
        last_of.try_emplace(fmt::format("{} {}", device, number), all.size());
    if (is_new || offset == 0) {
      last->second = all.size();
      all.push_back({path, begin});
    }
    LoadedLibrary& library = all[last->second];
    library.has_code = library.has_code || access.find('x') != std::string::npos;
  }
  return all;
}

template <class T>
bool read_at(pid_t process, std::uint64_t address, T& value) {
  return read_memory(process, address, &value, sizeof value);
}

// At most 64 characters. It is read page by page, because the next one need not be there.
std::string text_at(pid_t process, std::uint64_t address) {
  constexpr std::uint64_t page_bytes = 4096;
  std::array<char, 64> text{};
  const std::uint64_t first = std::min(text.size(), page_bytes - address % page_bytes);
  if (!read_memory(process, address, text.data(), first)) return {};
  if (::strnlen(text.data(), first) == first) {
    static_cast<void>(
        read_memory(process, address + first, text.data() + first, text.size() - first));
  }
  return {text.data(), ::strnlen(text.data(), text.size())};
}

// DT_SONAME; empty where the library has none, or no header is there.
std::string linked_name(pid_t process, std::uint64_t base) {
  Elf64_Ehdr header{};
  if (!read_at(process, base, header) ||
      std::string_view(ELFMAG) !=
          std::string_view(reinterpret_cast<const char*>(header.e_ident), SELFMAG)) {
    return {};
  }
  std::uint64_t first_address = 0;  // that the file gives to its first byte
  Elf64_Phdr dynamic{};
  for (unsigned part = header.e_phnum; part-- > 0;) {
    Elf64_Phdr segment{};
    if (!read_at(process, base + header.e_phoff + part * sizeof segment, segment)) return {};
    if (segment.p_type == PT_LOAD) first_address = segment.p_vaddr - segment.p_offset;
    if (segment.p_type == PT_DYNAMIC) dynamic = segment;
  }
  const std::uint64_t shift = base - first_address;
  std::optional<std::uint64_t> names;
  std::optional<std::uint64_t> name;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.p_memsz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry{};
    if (!read_at(process, shift + dynamic.p_vaddr + at, entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) names = entry.d_un.d_ptr;
    if (entry.d_tag == DT_SONAME) name = entry.d_un.d_val;
  }
  if (!names || !name) return {};
  // Some linkers write the address where the names are loaded, others leave that of the file.
  return text_at(process, *names + (*names < base ? shift : 0) + *name);
}

// "libcuda.so.580.159.04", and what this process was told to take in its place.
bool is_driver_name(const std::string& name) {
  const char* told = std::getenv("DEMARC_LIBCUDA");
  return name.starts_with("libcuda.so") ||
         (told != nullptr && name == std::filesystem::path(told).filename());
}

// What cannot be read may be one.
bool has_driver(const std::string& file) {
  const auto content = read_file(file);
  return !content || content->find("cuGetExportTable") != std::string::npos;
}

}  // namespace

std::optional<std::vector<std::string>> drivers_of(pid_t process) {
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  const auto libraries = loaded_libraries(maps);
  if (libraries.empty()) return std::nullopt;
  std::vector<std::string> drivers;
  for (const LoadedLibrary& library : libraries) {
    if (!library.has_code) continue;
    if (is_driver_name(std::filesystem::path(library.path).filename()) ||
        is_driver_name(linked_name(process, library.base))) {
      drivers.push_back(library.path);
    }
  }
  // Large files are read only where there is something to tell apart.
  if (drivers.size() > 1)
    std::erase_if(drivers, [](const auto& path) { return !has_driver(path); });
  return drivers;
}

}  // namespace demarc::cuda
