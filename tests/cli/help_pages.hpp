// What --help says, page by page, for tests that look at every option of every verb.
#pragma once

#include <string>
#include <vector>

namespace demarc::test {

struct HelpOption {
  std::string names;        // "-o,--output"; of a positional its name
  std::string values;       // "TEXT=cuda:0", "[=FILE]"; empty for a flag
  std::string group;        // the heading above it
  std::string description;  // one line
};

struct HelpPage {
  std::vector<std::string> verb;  // {"probe", "memory"}; empty for the program's own page
  std::string summary;            // its first line
  std::vector<HelpOption> options;
  std::vector<std::pair<std::string, std::string>> subcommands;  // and what each is for

  [[nodiscard]] std::string name() const;  // "demarc probe memory"
};

// The pages of the program, of its verbs and of their subcommands.
[[nodiscard]] const std::vector<HelpPage>& help_pages();

}  // namespace demarc::test
