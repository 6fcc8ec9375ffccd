// Reads which files a process has mapped as code.
#include "demarc/guest/code_files.hpp"

#include <filesystem>
#include <fstream>

namespace demarc::cuda {

std::optional<std::set<std::string>> code_files_of(const std::string& process) {
  std::ifstream maps("/proc/" + process + "/maps");
  std::set<std::string> files;
  bool any = false;
  for (std::string line; std::getline(maps, line);) {
    any = true;
    const std::size_t path = line.find('/');
    const std::size_t rights = line.find(' ');
    if (path == std::string::npos || rights == std::string::npos || line[rights + 3] != 'x')
      continue;
    files.insert(line.substr(path));
  }
  if (!any) return std::nullopt;
  return files;
}

bool is_of_the_driver(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  return name.starts_with("libcuda.so") || name.starts_with("libnvidia-");
}

}  // namespace demarc::cuda
