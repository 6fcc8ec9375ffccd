#include "demarc/sim/translation/report.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

namespace translation = sim::translation;

struct TranslateOptions {
  std::string architecture = "both";
  std::string apps = "all";
  std::vector<std::string> settings;
  unsigned threads = 0;
  bool json = false;
  bool list_settings = false;
  std::string output;
};

Result<std::vector<translation::Architecture>> architectures_of(const std::string& text) {
  using translation::Architecture;
  if (text == "both") return std::vector{Architecture::centralised, Architecture::distributed};
  if (text == "all") {
    return std::vector{Architecture::centralised, Architecture::distributed, Architecture::bypass};
  }
  for (const auto one :
       {Architecture::centralised, Architecture::distributed, Architecture::bypass}) {
    if (to_string(one) == text) return std::vector{one};
  }
  return invalid_input("--arch: '{}' is not one of centralised, distributed, bypass, both, all",
                       text);
}

std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  if (text == "all") {
    for (const auto& info : translation::application_table()) names.emplace_back(info.name);
    return names;
  }
  std::size_t start = 0;
  while (start <= text.size()) {
    const auto comma = std::min(text.find(',', start), text.size());
    names.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return names;
}

Result<void> translate(const TranslateOptions& options) {
  if (options.list_settings) {
    const translation::Settings defaults;
    std::string text;
    for (const auto& info : translation::setting_table()) {
      text += fmt::format("{:<20} {:<12} {} ({})\n", info.name, info.get(defaults), info.meaning,
                          info.range);
    }
    return emit("", text);
  }
  translation::Settings settings;
  for (const std::string& assignment : options.settings) {
    DEMARC_CHECK(translation::apply_setting(settings, assignment));
  }
  DEMARC_TRY(const auto architectures, architectures_of(options.architecture));
  DEMARC_TRY(const auto comparison,
             translation::compare(settings, names_of(options.apps), architectures, options.threads,
                                  terminal_progress()));
  return emit(options.output,
              options.json ? translation::to_json(comparison) : translation::to_text(comparison));
}

const RegisterVerb translate_verb(
    {.order = 110,
     .name = "translate",
     .summary =
         "Simulates address translation on several GPUs: centralised, distributed, dynamic bypass",
     .example = "demarc translate --arch both --app KM,ST --set gpus=4 --set megabytes=16",
     .declare = [](CLI::App& app) -> std::function<Result<void>()> {
       auto options = std::make_shared<TranslateOptions>();
       app.add_option("--arch", options->architecture,
                      "centralised, distributed, bypass, both or all")
           ->capture_default_str();
       app.add_option("--app", options->apps,
                      "applications: a comma list of RL,FIR,MP,PR,MT,KM,FFT,ST,AES, or all")
           ->capture_default_str();
       app.add_option("--set", options->settings, "NAME=VALUE; see --list-settings");
       app.add_option("--threads", options->threads, "runs at a time; 0: all cores")
           ->capture_default_str();
       app.add_flag("--json", options->json,
                    "JSON (schema demarc.translate/1) instead of the table");
       app.add_flag("--list-settings", options->list_settings,
                    "prints every setting, its default, meaning and range");
       add_output(app, "-o,--output", options->output, "file to write instead of standard output");
       return [options] { return translate(*options); };
     }});

}  // namespace
}  // namespace demarc::cli
