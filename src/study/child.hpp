// A child process in a group of its own.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "demarc/study/remote_lane.hpp"

namespace demarc::study {

class Child {
 public:
  // With `piped`, input() and output() are the child's standard input and output; otherwise it has
  // none of either. Its standard error is ours.
  static Result<Child> spawn(const std::vector<std::string>& argv, const Environment& environment,
                             bool piped);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  // end()

  [[nodiscard]] int input() const { return input_; }
  [[nodiscard]] int output() const { return output_; }
  [[nodiscard]] bool running();
  // Its exit code once it has ended (128 + signal when one ended it); nothing after `seconds`.
  std::optional<int> wait(double seconds);
  // Closes the pipes, waits `grace_seconds` for it to leave, then ends its process group.
  void end(double grace_seconds);

 private:
  Child() = default;
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int exit_code_ = -1;
};

}  // namespace demarc::study
