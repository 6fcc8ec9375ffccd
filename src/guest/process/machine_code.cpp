// Looks into the files that are mapped as code.
#include "process/machine_code.hpp"

#include <filesystem>
#include <fstream>
#include <set>

#include "demarc/base/files.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/kernels.hpp"

namespace demarc::cuda {
namespace {

bool is_of_the_driver(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  return name.starts_with("libcuda.so") || name.starts_with("libnvidia-");
}

// Files with executable pages, by their paths.
std::set<std::string> code_files() {
  std::ifstream maps("/proc/thread-self/maps");
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    const std::size_t rights = line.find(' ');
    if (path == std::string::npos || rights == std::string::npos || line[rights + 3] != 'x')
      continue;
    files.insert(line.substr(path));
  }
  return files;
}

Result<std::optional<std::string>> machine_code_in(const std::string& path, std::uint32_t sm) {
  DEMARC_TRY(const std::string content, read_file(path));
  DEMARC_TRY(const auto images, fatbin::images_of_program(content, path));
  for (const fatbin::FileImage& one : images) {
    DEMARC_TRY(const bool alone, fatbin::is_machine_code_alone(one.image, sm, one.where));
    if (alone) return fmt::format("{}: kernels without PTX that sm_{} can run", one.where, sm);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> machine_code_in_process(std::uint32_t sm) {
  for (const std::string& path : code_files()) {
    if (is_of_the_driver(path)) continue;
    auto found = machine_code_in(path, sm);
    if (!found) return found.error().message;
    if (*found) return std::move(*found);
  }
  return std::nullopt;
}

}  // namespace demarc::cuda
