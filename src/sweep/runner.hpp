// A process that runs one point after the other, each in a process of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "demarc/base/owned_file.hpp"
#include "demarc/sweep/run.hpp"

namespace demarc::sweep {

// What goes to a runner and comes back, as text.
struct Task {
  std::uint64_t index = 0;
  std::vector<std::string> arguments;
  std::vector<std::string> pointers;
};
[[nodiscard]] std::string to_text(const Task& task);
[[nodiscard]] Task task_of(const std::string& text);

struct Report {
  std::uint64_t index = 0;
  Outcome outcome;
};
[[nodiscard]] std::string to_text(const Report& report);
[[nodiscard]] Report report_of(const std::string& text);

// Bytes of a message between a runner and its master.
inline constexpr std::size_t max_message = std::size_t{1} << 18;

class Runner {
 public:
  // It runs on cores `first` to `first` + `cores` of those that this process may use; 0 cores: all.
  // missing_capability when no process can be started.
  [[nodiscard]] static Result<Runner> start(const Plan& plan, const RunCommand& command,
                                            unsigned first, unsigned cores);
  Runner(Runner&& other) noexcept { swap(other); }
  Runner& operator=(Runner&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Runner();

  [[nodiscard]] int descriptor() const {
    return socket_.get();
  }  // readable: receive() gives something
  // Tasks wait in line; false: the runner is gone.
  [[nodiscard]] bool send(const std::string& task) const;
  // A report, if one has come; nothing and gone() where the runner has ended.
  [[nodiscard]] std::optional<std::string> receive();
  [[nodiscard]] bool gone() const { return gone_; }

 private:
  Runner(OwnedFile socket, pid_t pid)
      : socket_(std::move(socket)), pid_(pid), buffer_(max_message, '\0') {}
  void swap(Runner& other) noexcept {
    std::swap(socket_, other.socket_);
    std::swap(pid_, other.pid_);
    std::swap(gone_, other.gone_);
    std::swap(buffer_, other.buffer_);
  }
  OwnedFile socket_;
  pid_t pid_ = -1;
  bool gone_ = false;
  std::string buffer_;
};

}  // namespace demarc::sweep
