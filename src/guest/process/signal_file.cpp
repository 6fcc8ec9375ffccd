// Blocks the signals, and reads them by signalfd.
#include "demarc/guest/signal_file.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace demarc::cuda {

Result<SignalFile> SignalFile::open() {
  SignalFile signals;
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGCHLD, SIGPIPE}) {
    ::sigaddset(&taken, number);
  }
  signals.file_ = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals.file_ < 0) {
    return missing_capability("cannot take signals from a file: {}", std::strerror(errno));
  }
  ::sigprocmask(SIG_BLOCK, &taken, &signals.before_);
  // Where the parent of this program ignores SIGCHLD, the kernel would keep exit codes to itself.
  ::sigaction(SIGCHLD, nullptr, &signals.children_before_);
  ::signal(SIGCHLD, SIG_DFL);
  return signals;
}

SignalFile::~SignalFile() {
  if (file_ < 0) return;
  // What came too late was not for this process.
  while (take()) {
  }
  ::close(file_);
  ::sigaction(SIGCHLD, &children_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

SignalFile::SignalFile(SignalFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      before_(other.before_),
      children_before_(other.children_before_) {}

std::optional<SignalFile::Signal> SignalFile::take() const {
  signalfd_siginfo info{};
  if (::read(file_, &info, sizeof info) != sizeof info) return std::nullopt;
  return Signal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace demarc::cuda
