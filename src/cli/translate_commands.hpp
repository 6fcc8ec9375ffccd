// Subcommands of `demarc translate`, and what they share with it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "demarc/sim/translation/report.hpp"
#include "demarc/sim/translation/settings.hpp"
#include "verb.hpp"

namespace demarc::cli {

// The options by which a run names its machine: a description, then settings on top.
class MachineOptions {
 public:
  void declare(CLI::App& app);
  [[nodiscard]] Result<sim::translation::Settings> settings() const;
  // The setting was given, by --set or, of gpus, split, placement and remote, by its own option.
  [[nodiscard]] bool names(std::string_view setting) const;

 private:
  std::string device_;
  std::vector<std::string> assignments_;
  std::vector<std::pair<std::string, std::string>> named_ = {
      {"gpus", ""}, {"split", ""}, {"placement", ""}, {"remote", ""}};
};

// "KM,ST" or "all"; an unknown name is an error that lists them.
[[nodiscard]] Result<std::vector<std::string>> application_names(const std::string& text);

// -q leaves the results alone.
[[nodiscard]] inline sim::translation::TextParts text_parts() {
  using sim::translation::TextParts;
  return quiet() ? TextParts::results : TextParts::all;
}

struct TranslateCommand {
  CLI::App* app = nullptr;
  std::function<Result<void>()> run;
};
[[nodiscard]] TranslateCommand declare_translate_study(CLI::App& verb);

}  // namespace demarc::cli
