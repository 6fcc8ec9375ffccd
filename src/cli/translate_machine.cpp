// Declares the options of demarc translate and its study that name the simulated machine and the
// applications.
#include <algorithm>

#include "demarc/base/text.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/sim/translation/application.hpp"
#include "help.hpp"
#include "translate_commands.hpp"

namespace demarc::cli {

namespace translation = sim::translation;

void MachineOptions::declare(CLI::App& app) {
  app.add_option("--device", device_,
                 fmt::format("machine: sim:NAME ({}) or sim:FILE.json (docs/translation.md); "
                             "--print-device writes such a file",
                             joined(translation::builtin_machine_names(), ", ")))
      ->option_text("sim:NAME");
  const char* meanings[] = {
      "number of GPUs, 1 to 64 (default: 4)",
      "how work-groups are distributed: roundrobin, contiguous, dim0 or native (default: "
      "roundrobin)",
      ("where a page lies: first-touch, first-walk, interleaved, contiguous, far (default: "
       "first-touch)"),
      "how a page of another GPU is used: lines (of its L2) or migration (default: lines)"};
  const char* values[] = {"N", "HOW", "WHERE", "HOW"};
  for (std::size_t i = 0; i < named_.size(); ++i) {
    app.add_option("--" + named_[i].first, named_[i].second, meanings[i])->option_text(values[i]);
  }
  app.add_option(
         "--set", assignments_,
         "setting of the machine; translate --list-settings prints them all; may be repeated")
      ->option_text("NAME=VALUE");
  group_options(app, "Machine",
                {"--device", "--gpus", "--split", "--placement", "--remote", "--set"});
}

bool MachineOptions::names(std::string_view setting) const {
  return std::any_of(
             named_.begin(), named_.end(),
             [&](const auto& named) { return named.first == setting && !named.second.empty(); }) ||
         std::any_of(assignments_.begin(), assignments_.end(), [&](const std::string& assignment) {
           return assignment.substr(0, assignment.find('=')) == setting;
         });
}

Result<translation::Settings> MachineOptions::settings() const {
  translation::Settings settings;
  if (!device_.empty()) {
    DEMARC_TRY(const auto machine,
               gpu::parse_ref_as<gpu::SimulatedRef>(
                   device_, "a machine was expected: sim:NAME or sim:FILE.json"));
    DEMARC_TRY(settings, translation::find_machine(machine.name));
  }
  for (const auto& [name, value] : named_) {
    if (value.empty()) continue;
    if (auto applied = translation::apply_setting(settings, fmt::format("{}={}", name, value));
        !applied)
      return invalid_input("--{}", applied.error().message);
  }
  for (const std::string& assignment : assignments_) {
    if (auto applied = translation::apply_setting(settings, assignment); !applied)
      return invalid_input("--set {}: {}", assignment, applied.error().message);
  }
  DEMARC_CHECK(translation::validate(settings));
  return settings;
}

Result<std::vector<std::string>> application_names(const std::string& text) {
  std::vector<std::string> names;
  if (text == "all") {
    for (const auto& info : translation::application_table()) names.emplace_back(info.name);
    return names;
  }
  for (std::size_t start = 0; start <= text.size();) {
    const auto comma = std::min(text.find(',', start), text.size());
    names.push_back(text.substr(start, comma - start));
    if (auto made = translation::make_application(names.back(), {}); !made)
      return invalid_input("--app: {}", made.error().message);
    start = comma + 1;
  }
  return names;
}

}  // namespace demarc::cli
