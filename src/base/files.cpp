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

// Where the content of `path` goes first: a pipe or device (/dev/stdout) cannot be replaced by a
// rename, it is written directly.
struct WriteTarget {
  std::string file;
  bool direct = false;

  explicit WriteTarget(const std::filesystem::path& path) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    direct = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
    file = direct ? path.string()
                  : fmt::format("{}.{}.tmp", path.string(), static_cast<long>(::getpid()));
  }
};

tl::unexpected<Error> unwritable(const std::filesystem::path& path, int cause) {
  return invalid_input("{}: cannot be written: {}", path.string(), std::strerror(cause));
}

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
  const WriteTarget target(path);
  const auto fail = [&] {
    const int cause = errno;
    if (!target.direct) std::remove(target.file.c_str());
    return unwritable(path, cause);
  };
  File file(std::fopen(target.file.c_str(), "wb"));
  if (!file) return unwritable(path, errno);
  if (std::fwrite(content.data(), 1, content.size(), file.get()) != content.size()) return fail();
  if (std::fclose(file.release()) != 0) return fail();
  if (!target.direct && std::rename(target.file.c_str(), path.c_str()) != 0) return fail();
  return {};
}

Result<void> check_writable(const std::filesystem::path& path) {
  const WriteTarget target(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return unwritable(path, EISDIR);
  if (target.direct) {
    if (::access(path.c_str(), W_OK) != 0) return unwritable(path, errno);
    return {};
  }
  const File file(std::fopen(target.file.c_str(), "wb"));
  if (!file) return unwritable(path, errno);
  std::remove(target.file.c_str());
  return {};
}

}  // namespace demarc
