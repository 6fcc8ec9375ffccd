// Signals that arrive in a file instead of interrupting this process.
#pragma once

#include <csignal>

#include <optional>

#include "demarc/base/result.hpp"

namespace demarc::cuda {

// While it lives, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGCHLD and SIGPIPE are kept from the calling
// thread; those that were not taken go with it. For programs of one thread: another would still be
// interrupted.
class SignalFile {
 public:
  static Result<SignalFile> open();
  ~SignalFile();
  SignalFile(SignalFile&& other) noexcept;
  SignalFile& operator=(SignalFile&&) = delete;

  struct Signal {
    int number = 0;
    bool from_kernel = false;  // as the terminal's, which go to a whole process group
  };
  [[nodiscard]] int file() const { return file_; }
  // Call when the file is readable.
  [[nodiscard]] std::optional<Signal> take() const;
  // What a program that is started meanwhile has to begin with.
  [[nodiscard]] const sigset_t& mask_before() const { return before_; }

 private:
  SignalFile() = default;
  int file_ = -1;
  sigset_t before_{};
  struct sigaction children_before_ {};
};

}  // namespace demarc::cuda
