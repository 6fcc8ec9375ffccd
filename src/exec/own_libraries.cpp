// Finds the libraries that `demarc exec` loads into programs.
#include <filesystem>

#include "demarc/base/process.hpp"
#include "demarc/exec/confine.hpp"

namespace demarc::cuda {
namespace {

constexpr const char* preload_name = "libdemarc_preload.so";
constexpr const char* compilers_name = "libdemarc_compilers.so";
constexpr const char* blas_name = "libdemarc_blas.so";

Result<std::string> find_beside(const std::string& preload, const char* name) {
  namespace fs = std::filesystem;
  const fs::path path = fs::path(preload).parent_path() / name;
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path.string();
  return missing_capability("{} was not found beside {}; a tenant's program needs both", name,
                            preload);
}

}  // namespace

Result<std::string> find_preload(const std::string& wanted) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!wanted.empty()) {
    if (fs::exists(wanted, ignored)) return fs::absolute(wanted).string();
    return invalid_input("{}: this library does not exist", wanted);
  }
  const std::string found = find_own_library(preload_name);
  if (!found.empty()) return found;
  return missing_capability(
      "{} was not found beside {}, where builds and packages put it; give its path by --preload",
      preload_name, program_folder().string());
}

Result<std::string> find_compilers(const std::string& preload) {
  return find_beside(preload, compilers_name);
}

Result<std::string> find_blas(const std::string& preload) {
  return find_beside(preload, blas_name);
}

}  // namespace demarc::cuda
