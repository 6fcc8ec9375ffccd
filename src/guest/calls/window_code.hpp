// Code of a program that is loaded as it is, because the page table leads the window's addresses to
// the tenant's bytes: machine code, and PTX that arithmetic does not serve.
#pragma once

#include <functional>
#include <string>

#include "calls/call_answer.hpp"
#include "calls/launch_names.hpp"
#include "demarc/guest/control.hpp"

namespace demarc::cuda {

class WindowCode {
 public:
  struct Means {
    WindowUse use = WindowUse::never;
    // The tenant's bytes lie at the window's addresses once it has succeeded.
    std::function<Result<void>()> show;
  };
  // All that is referred to outlives the object.
  WindowCode(Means means, ProgramRecord& record,
             const std::function<void(const std::string& line)>& tell)
      : means_(std::move(means)),
        record_(record),
        tell_(tell),
        launches_(record, Recorded::window_kernel) {}

  // All code of the program is to be loaded so, and the window is all that the process reaches.
  [[nodiscard]] bool always() const { return means_.use == WindowUse::always; }
  // Whether code may be loaded as it is that arithmetic does not serve, for this reason. The first
  // time the window is filled. The error holds both reasons.
  [[nodiscard]] Result<void> admit(const std::string& why);
  // The same for a module that is then loaded as it is, which the program's record notes.
  [[nodiscard]] Result<void> admit_code(const std::string& why);
  // Such code was admitted: the window is filled.
  [[nodiscard]] bool admitted() const { return admitted_.load(std::memory_order_acquire); }
  // A function that Demarc has not rewritten: nothing, if such code was admitted.
  [[nodiscard]] bool launches(CuFunction function);

 private:
  Means means_;
  ProgramRecord& record_;
  const std::function<void(const std::string& line)>& tell_;
  LaunchNames launches_;
  std::atomic<bool> admitted_{false};
};

}  // namespace demarc::cuda
