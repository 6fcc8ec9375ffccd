// The options by which emulate, locality, translate and isolate name a launch.
//
//   auto options = std::make_shared<LaunchOptions>();
//   options->declare(app);
//   return [options]() -> Result<void> { DEMARC_TRY(const auto loaded, options->load()); … };
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "demarc/base/json.hpp"
#include "demarc/workload/load.hpp"

namespace demarc::cli {

class LaunchOptions {
 public:
  void declare(CLI::App& app);
  // After parsing.
  [[nodiscard]] Result<workload::LoadedLaunch> load() const;

  // For verbs that look at one kernel: beside a launch file or a bundled launch --kernel alone then
  // names one of its kernels, which chosen_kernel() gives; empty when none was named.
  void let_kernel_choose() { kernel_chooses_ = true; }
  [[nodiscard]] std::string chosen_kernel() const;

 private:
  static void group(CLI::App& app);  // its options under a heading

  workload::LaunchRequest request_;
  std::vector<std::string> parameters_;  // NAME=VALUE
  std::vector<CLI::Option*> text_options_;
  CLI::Option* seed_ = nullptr;
  CLI::Option* target_ = nullptr;
  bool kernel_chooses_ = false;
};

// On standard error, a line per variable; and as "warnings" of a JSON.
void warn_of_unset(std::string_view verb, const std::vector<workload::UnsetConstant>& unset);
[[nodiscard]] Json unset_json(const std::vector<workload::UnsetConstant>& unset);

}  // namespace demarc::cli
