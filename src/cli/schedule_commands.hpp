// Subcommands of `demarc schedule`. Each declares itself on the verb and returns what to run.
#pragma once

#include "verb.hpp"

namespace demarc::cli {

struct ScheduleCommand {
  CLI::App* app = nullptr;
  std::function<Result<void>()> run;
};

[[nodiscard]] ScheduleCommand declare_schedule_generate(CLI::App& verb);
[[nodiscard]] ScheduleCommand declare_schedule_study(CLI::App& verb);
[[nodiscard]] ScheduleCommand declare_schedule_compare(CLI::App& verb);
[[nodiscard]] ScheduleCommand declare_schedule_plan(CLI::App& verb);

}  // namespace demarc::cli
