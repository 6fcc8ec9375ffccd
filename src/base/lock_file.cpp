// Locks files by flock().
#include "demarc/base/lock_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace demarc {
namespace {

bool leads_to(const std::string& path, const OwnedFile& file) {
  struct stat opened {};
  struct stat found {};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &found) == 0 &&
         opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
}

}  // namespace

Result<OwnedFile> try_lock_file(const std::string& path) {
  for (;;) {
    OwnedFile file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return invalid_input("'{}': {}", path, std::strerror(errno));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return OwnedFile();
      return missing_capability("'{}': {}", path, std::strerror(errno));
    }
    if (leads_to(path, file)) return file;
  }
}

}  // namespace demarc
