#include "paths.hpp"

#include <unistd.h>

namespace demarc::test {

std::filesystem::path source_dir() {
  return DEMARC_SOURCE_DIR;
}
std::filesystem::path build_dir() {
  return DEMARC_BINARY_DIR;
}
std::filesystem::path shared_dir() {
  return source_dir().parent_path() / "shared";
}

std::filesystem::path fresh_folder(const std::string& name) {
  auto folder = std::filesystem::temp_directory_path() /
                ("demarc_" + name + "_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace demarc::test
