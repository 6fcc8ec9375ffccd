// The signals that tell a server to end or to read its configuration again. A thread of its own
// takes them, so that a server ends in time even where its serving thread stands still, in a call
// of the driver for example.
#pragma once

#include <csignal>
#include <functional>
#include <memory>

namespace demarc::serve {

class Signals {
 public:
  // Blocks SIGTERM, SIGINT and SIGHUP in this thread, whose children have them blocked, too: make
  // it while there is one thread. A process that still runs so many seconds after SIGTERM or SIGINT
  // ends with exit code 3, after `by_force`, which runs in the other thread.
  explicit Signals(
      double seconds = 9, std::function<void()> by_force = [] {});
  // As the signals were before. The limit of an end that was told stays.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int file() const;  // readable: next() has one
  [[nodiscard]] int next() const;  // 0: none has come

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread may outlive this object
  sigset_t before_{};
};

}  // namespace demarc::serve
