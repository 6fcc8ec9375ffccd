// Makes the control block in nameless memory, and opens it by its owner's number and a token.
#include "demarc/guest/control.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include "demarc/base/owned_file.hpp"

namespace demarc::cuda {
namespace {

// Processes that have the block mapped must not lose its pages.
constexpr int fixed_size = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string token_text(const std::uint64_t (&token)[2]) {
  return fmt::format("{:016x}{:016x}", token[0], token[1]);
}

void* map_block(int file) {
  return ::mmap(nullptr, sizeof(ControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

bool is_sealed_block(int file) {
  struct stat status {};
  return ::fcntl(file, F_GET_SEALS) == fixed_size && ::fstat(file, &status) == 0 &&
         status.st_size == static_cast<off_t>(sizeof(ControlBlock));
}

// Where memory without a name lies: the kernel's own file system, which is mounted nowhere else.
Result<dev_t> device_of_nameless_memory() {
  const OwnedFile file(::memfd_create("demarc-where", MFD_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    return missing_capability("cannot make memory without a name: {}", std::strerror(errno));
  }
  return status.st_dev;
}

// The file of "/proc/PID/fd/N#TOKEN". It waits for nothing: opening a file, asking for its size and
// closing it are questions to its file system, which another process may answer as late as it likes
// (FUSE). So the file is named first, which asks nothing, and is opened if it is nameless memory.
Result<OwnedFile> open_file(const std::string& value) {
  const std::size_t mark = value.rfind('#');
  if (mark == std::string::npos) {
    return invalid_input("{}: not a control block: expected /proc/PID/fd/N#TOKEN", value);
  }
  const OwnedFile named(::open(value.substr(0, mark).c_str(), O_PATH | O_CLOEXEC));
  struct statx facts {};
  if (named.get() < 0 ||
      ::statx(named.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &facts) != 0) {
    return invalid_input(
        "{}: the control block cannot be opened ({}): its demarc exec has ended, or belongs to "
        "another user",
        value, std::strerror(errno));
  }
  DEMARC_TRY(const dev_t device, device_of_nameless_memory());
  OwnedFile file;
  if (makedev(facts.stx_dev_major, facts.stx_dev_minor) == device) {
    file = OwnedFile(::open(fmt::format("/proc/thread-self/fd/{}", named.get()).c_str(),
                            O_RDWR | O_CLOEXEC | O_NONBLOCK));
  }
  if (file.get() >= 0) return file;
  return invalid_input("{}: this is not a control block: it is a file that has a name", value);
}

}  // namespace

Result<Control> Control::create() {
  OwnedFile file(::memfd_create("demarc-control", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) {
    return missing_capability("cannot make the control block: {}", std::strerror(errno));
  }
  void* memory = MAP_FAILED;
  decltype(ControlBlock::token) token;
  decltype(ControlBlock::report_token) report_token = 0;
  if (::ftruncate(file.get(), sizeof(ControlBlock)) == 0 &&
      ::fcntl(file.get(), F_ADD_SEALS, fixed_size) == 0 && ::getentropy(token, sizeof token) == 0 &&
      ::getentropy(&report_token, sizeof report_token) == 0) {
    memory = map_block(file.get());
  }
  if (memory == MAP_FAILED) {
    const int code = errno;
    return missing_capability("cannot make the control block of {} bytes: {}{}",
                              sizeof(ControlBlock), std::strerror(code),
                              code == EFBIG ? ": raise the limit (ulimit -f)" : "");
  }
  auto* block = new (memory) ControlBlock;
  std::memcpy(block->token, token, sizeof token);
  block->report_token = report_token;
  std::string value = fmt::format("/proc/{}/fd/{}#{}", ::getpid(), file.get(), token_text(token));
  return Control(std::move(value), std::move(file), block);
}

Result<Control> Control::open(const std::string& value) {
  DEMARC_TRY(const OwnedFile file, open_file(value));
  void* memory = is_sealed_block(file.get()) ? map_block(file.get()) : MAP_FAILED;
  if (memory != MAP_FAILED) {
    auto* block = static_cast<ControlBlock*>(memory);
    if (block->magic == ControlBlock::expected_magic && block->bytes == sizeof(ControlBlock) &&
        token_text(block->token) == value.substr(value.rfind('#') + 1)) {
      return Control(value, OwnedFile(), block);
    }
    ::munmap(memory, sizeof(ControlBlock));
  }
  return invalid_input(
      "{}: this is not the control block of this name: it belongs to another version of Demarc, or "
      "its demarc exec has ended",
      value);
}

Control::~Control() {
  if (block_ != nullptr) ::munmap(block_, sizeof(ControlBlock));
}

Control::Control(Control&& other) noexcept
    : value_(std::move(other.value_)),
      file_(std::move(other.file_)),
      block_(std::exchange(other.block_, nullptr)) {}

Result<void> Control::store_mask(const HardwareMask& mask, bool active, std::string_view tpcs,
                                 int turns) const {
  // A file of its own: locks are of open files. The kernel takes the lock back from who dies.
  DEMARC_TRY(const OwnedFile file, open_file(value_));
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (--turns <= 0) {
      return check_failed("{}: another process holds the lock of the control block", value_);
    }
    ::usleep(1000);
  }
  block_->masks.begin(block_->mask.published() + 1, tpcs);
  block_->mask.store(mask, active);
  return {};
}

Result<OwnedFile> Control::turn_to_move(int looks) const {
  if (HardwareMask ignored; !block_->mask.load(ignored)) {
    return invalid_input("this program is only observed, so it has no TPCs of its own to change");
  }
  DEMARC_TRY(OwnedFile file, open_file(value_));
  struct flock all_bytes {};
  all_bytes.l_type = F_WRLCK;
  for (int look = 0; ::fcntl(file.get(), F_OFD_SETLK, &all_bytes) != 0; ++look) {
    if (look == looks) return missing_capability("another process is still moving this program");
    ::usleep(10'000);
  }
  return file;
}

Result<std::string> control_value_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  if (!file) return invalid_input("--pid {}: no such process, or it is not yours", pid);
  const std::string prefix = std::string(control_variable) + "=";
  std::string entry;
  while (std::getline(file, entry, '\0')) {
    if (entry.starts_with(prefix)) return entry.substr(prefix.size());
  }
  return invalid_input("--pid {}: that process was not started by demarc exec", pid);
}

}  // namespace demarc::cuda
