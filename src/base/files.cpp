#include "demarc/base/files.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace demarc {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return invalid_input("{}: is a directory, a file was expected", path.string());
  }
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return invalid_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  std::string content;
  const auto size = std::filesystem::file_size(path, ignored);
  if (!ignored) content.reserve(size);
  char buffer[1 << 16];
  std::size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, file.get())) > 0) content.append(buffer, got);
  if (std::ferror(file.get()) != 0) {
    return invalid_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  return content;
}

Result<void> write_file(const std::filesystem::path& path, std::string_view content) {
  // A pipe or device (/dev/stdout) cannot be replaced by a rename; it is written directly.
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  const bool direct = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  const std::string target =
      direct ? path.string()
             : fmt::format("{}.{}.tmp", path.string(), static_cast<long>(::getpid()));
  const auto fail = [&]() -> Result<void> {
    const int cause = errno;
    if (!direct) std::remove(target.c_str());
    return invalid_input("{}: cannot be written: {}", path.string(), std::strerror(cause));
  };
  File file(std::fopen(target.c_str(), "wb"));
  if (!file) return invalid_input("{}: cannot be written: {}", path.string(), std::strerror(errno));
  if (std::fwrite(content.data(), 1, content.size(), file.get()) != content.size()) return fail();
  if (std::fclose(file.release()) != 0) return fail();
  if (!direct && std::rename(target.c_str(), path.c_str()) != 0) return fail();
  return {};
}

}  // namespace demarc
