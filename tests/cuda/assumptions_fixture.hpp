// A program under `demarc exec` in a process of its own, and what was said of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "confine_fixture.hpp"
#include "demarc/base/files.hpp"

namespace demarc::cuda {

class Assumptions : public Confine {
 protected:
  // In a process of its own: the outcome's exit code of the program, and whether it holds, are
  // compared there. What the program and its processes said goes to `said()`.
  int ran(const std::vector<std::string>& steps, int exit_code, bool holds,
          const std::function<void(ConfinePlan&)>& change = nullptr) {
    return Supervised::apart([&] {
      auto plan = plan_for(program, steps);
      plan.command.insert(plan.command.begin(),
                          {"sh", "-c", "exec \"$@\" 2>>\"$0\"", error_path()});
      plan.tell = [this](const std::string& line) { note(line); };
      if (change) change(plan);
      const auto outcome = run_confined(plan);
      if (!outcome) {
        note(outcome.error().message);
        return 100 + static_cast<int>(outcome.error().kind);
      }
      note(warnings(*outcome) + audit_to_text(*outcome));
      if (outcome->holds() != holds) return complain(warnings(*outcome));
      if (outcome->program_exit_code != exit_code) {
        return complain(std::to_string(outcome->program_exit_code));
      }
      return 0;
    });
  }
  static int refused() { return 100 + static_cast<int>(ErrorKind::missing_capability); }
  [[nodiscard]] std::string error_path() const { return program.log_path() + ".err"; }
  void note(const std::string& line) const {
    const std::string before = read_file(error_path()).value_or("");
    static_cast<void>(write_file(error_path(), before + line + "\n"));
  }
  [[nodiscard]] std::string said() const { return read_file(error_path()).value_or(""); }
};

}  // namespace demarc::cuda
