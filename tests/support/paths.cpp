// Finds the source and build trees, and makes folders that go when the process ends.
#include "paths.hpp"

#include <unistd.h>

#include <mutex>
#include <vector>

namespace demarc::test {
namespace {

// What this process made is gone when it ends; children that end by exit() own nothing of it.
class Folders {
 public:
  ~Folders() {
    if (::getpid() != owner_) return;
    std::error_code ignored;
    for (const auto& folder : made_) std::filesystem::remove_all(folder, ignored);
  }
  void add(const std::filesystem::path& folder) {
    const std::lock_guard<std::mutex> lock(mutex_);
    made_.push_back(folder);
  }

 private:
  pid_t owner_ = ::getpid();
  std::mutex mutex_;
  std::vector<std::filesystem::path> made_;
};

}  // namespace

std::filesystem::path source_dir() {
  return DEMARC_SOURCE_DIR;
}
std::filesystem::path build_dir() {
  return DEMARC_BINARY_DIR;
}

std::filesystem::path fresh_folder(const std::string& name) {
  auto folder = std::filesystem::temp_directory_path() /
                ("demarc_" + name + "_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  static Folders folders;
  folders.add(folder);
  return folder;
}

const std::filesystem::path& fake_libcuda() {
  static const std::filesystem::path copy = [] {
    auto path = fresh_folder("libcuda") / "libcuda.so.580.159.04";
    std::filesystem::copy_file(build_dir() / "libdemarc_fake_libcuda.so", path);
    return path;
  }();
  return copy;
}

}  // namespace demarc::test
