#include "demarc/cuda/control.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

namespace demarc::cuda {
namespace {

Result<void*> map_block(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) {
    return invalid_input("{}: the control block cannot be opened: {}", path, std::strerror(errno));
  }
  struct stat status {};
  const bool create = (flags & O_CREAT) != 0;
  const bool sized = create ? ::ftruncate(file, sizeof(ControlBlock)) == 0
                            : ::fstat(file, &status) == 0 &&
                                  status.st_size == static_cast<off_t>(sizeof(ControlBlock));
  void* memory =
      sized ? ::mmap(nullptr, sizeof(ControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
            : MAP_FAILED;
  ::close(file);
  if (memory == MAP_FAILED) {
    return invalid_input("{}: not a control block of this version of Demarc", path);
  }
  return memory;
}

}  // namespace

Result<Control> Control::create(const std::string& path) {
  DEMARC_TRY(void* memory, map_block(path, O_CREAT | O_EXCL));
  return Control(path, new (memory) ControlBlock, true);
}

Result<Control> Control::open(const std::string& path) {
  DEMARC_TRY(void* memory, map_block(path, 0));
  auto* block = static_cast<ControlBlock*>(memory);
  if (block->magic != ControlBlock::expected_magic || block->bytes != sizeof(ControlBlock)) {
    ::munmap(memory, sizeof(ControlBlock));
    return invalid_input("{}: not a control block of this version of Demarc", path);
  }
  return Control(path, block, false);
}

Control::~Control() {
  if (block_ == nullptr) return;
  ::munmap(block_, sizeof(ControlBlock));
  if (owner_) ::unlink(path_.c_str());
}

Control::Control(Control&& other) noexcept
    : path_(std::move(other.path_)),
      block_(std::exchange(other.block_, nullptr)),
      owner_(other.owner_) {}

std::string new_control_path() {
  const char* folder = "/dev/shm";
  if (::access(folder, W_OK) != 0) {
    const char* temporary = std::getenv("TMPDIR");
    folder = temporary != nullptr ? temporary : "/tmp";
  }
  return fmt::format("{}/demarc-{}-{}", folder, ::getuid(), ::getpid());
}

Result<std::string> control_path_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  if (!file) return invalid_input("--pid {}: no such process, or it is not yours", pid);
  const std::string prefix = std::string(control_variable) + "=";
  std::string entry;
  while (std::getline(file, entry, '\0')) {
    if (entry.rfind(prefix, 0) == 0) return entry.substr(prefix.size());
  }
  return invalid_input("--pid {}: that process was not started by demarc exec", pid);
}

}  // namespace demarc::cuda
