// Writes option names as a user types them, also those of flags that take a value.
#include "help.hpp"

#include <string>

namespace demarc::cli {
namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  // CLI11 adds to a flag's name the value that it stands for: "--no-checks{false}".
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = Formatter::make_option_name(option, positional);
    while (name.find('{') != std::string::npos) {
      const auto begin = name.find('{');
      name.erase(begin, name.find('}', begin) + 1 - begin);
    }
    return name;
  }

  // "--json[=FILE]": of a flag the value stands behind an equals sign alone.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = Formatter::make_option_opts(option);
    if (text.starts_with(" [=")) text.erase(0, 1);
    return text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace demarc::cli
