// Writes option names as a user types them, also those of flags that take a value.
#include "help.hpp"

#include <string_view>
#include <utility>

namespace demarc::cli {
namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  // One blank line between headings.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = Formatter::make_help(app, std::move(name), mode);
    for (auto at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n"))
      text.erase(at, 1);
    return text;
  }

  // CLI11 adds to a flag's name the value that it stands for: "--no-checks{false}".
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = Formatter::make_option_name(option, positional);
    // Both spellings are read, but one is shown.
    for (auto at = name.find(",--colour"); at != std::string::npos; at = name.find(",--colour"))
      name.erase(at, name.find(',', at + 1) - at);
    while (name.find('{') != std::string::npos) {
      const auto begin = name.find('{');
      name.erase(begin, name.find('}', begin) + 1 - begin);
    }
    return name;
  }

  // "--json[=FILE]": of a flag the value stands behind an equals sign alone. Left out is what CLI11
  // says twice, "UINT:INT in [1 - 64]", and the default of a list that is empty.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = Formatter::make_option_opts(option);
    if (text.starts_with(" [=")) text.erase(0, 1);
    for (const auto& [said, shown] :
         {std::pair<std::string_view, std::string_view>{":INT in ", " in "},
          {":UINT in ", " in "},
          {":FLOAT in ", " in "},
          {":NONNEGATIVE", ""},
          {"=[]", ""}}) {
      const auto at = text.find(said);
      if (at != std::string::npos) text.replace(at, said.size(), shown);
    }
    return text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::vector<std::string> shown_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) {
    if (!name.starts_with("colour")) names.push_back("--" + name);
  }
  return names;
}

std::string usage_of(const CLI::App& app, const std::string& name) {
  std::string usage = HelpFormatter().make_usage(&app, name);
  while (usage.ends_with('\n')) usage.pop_back();
  return usage;
}

void group_options(CLI::App& app, const std::string& heading,
                   std::initializer_list<const char*> options) {
  for (const char* option : options) app.get_option(option)->group(heading);
}

}  // namespace demarc::cli
