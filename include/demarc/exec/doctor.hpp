// Finds out what can confine programs on this machine, by trying it; `demarc doctor` prints it.
// Each row calls the functions with which exec, isolate and serve start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::cuda {

enum class CheckState {
  works,
  lacks,
  unknown,  // something that it needs is missing
};

struct Check {
  std::string name;
  CheckState state = CheckState::unknown;
  std::string found;
  std::string cure;     // what would make it work; empty if it works or is unknown
  std::string used_by;  // which verbs, or what of them
  bool needed = false;  // programs cannot be confined without it
};

struct DoctorPlan {
  std::uint32_t device = 0;
  std::string description;  // description of the card's memory, as gpu::describe_card() takes it
  std::string preload;      // as ConfinePlan has it
};

// One row per check; a check comes after those that it builds on. A process of its own looks at the
// card, and nothing about the card is remembered. Call it before this process has used CUDA, and
// while it has only one thread.
[[nodiscard]] std::vector<Check> look_at_machine(const DoctorPlan& plan);

// missing_capability if a needed row does not work; it names each.
[[nodiscard]] Result<void> check_confines(const std::vector<Check>& checks);

// "works", "does not", "unknown"
[[nodiscard]] std::string to_string(CheckState state);
// Two lines per row, or three.
[[nodiscard]] std::string checks_to_text(const std::vector<Check>& checks);
// Schema demarc.doctor/1; `device` is what --device said.
[[nodiscard]] std::string checks_to_json(const std::vector<Check>& checks,
                                         const std::string& device);

}  // namespace demarc::cuda
