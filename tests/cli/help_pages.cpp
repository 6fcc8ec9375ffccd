// Reads the pages of --help into options.
#include "help_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "program.hpp"

namespace demarc::test {
namespace {

// CLI11 begins descriptions in this column, further right in a group of options within others.
// Behind longer names they stand on the next line.
constexpr std::size_t description_column = 30;
constexpr std::size_t usual_indent = 2;

std::string without_blanks(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// "  -o,--output TEXT            write to this file", or the names alone.
HelpOption option_of(const std::string& line, const std::string& next, const std::string& group) {
  HelpOption option;
  option.group = group;
  std::string names = line;
  const std::size_t indent = line.find_first_not_of(' ');
  const std::size_t column = description_column + indent - usual_indent;
  const bool below = next.find_first_not_of(' ') == column;
  if (below) option.description = next.substr(column);
  if (!below && line.size() > column) {
    names = line.substr(0, column);
    option.description = line.substr(column);
  }
  names = without_blanks(names);
  const std::size_t end = std::min({names.find(' '), names.find('['), names.size()});
  option.names = names.substr(0, end);
  option.values = without_blanks(names.substr(end));
  return option;
}

bool is_footer(const std::string& line) {
  return line.starts_with("Example") || line.starts_with("demarc VERB");
}

HelpPage page_of(const std::vector<std::string>& verb) {
  HelpPage page;
  page.verb = verb;
  std::vector<std::string> arguments = verb;
  arguments.emplace_back("--help");
  const Outcome outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << page.name() << ": " << outcome.err;
  std::vector<std::string> lines;
  std::istringstream text(outcome.out);
  for (std::string line; std::getline(text, line) && !is_footer(line);) lines.push_back(line);
  page.summary = lines.at(0);
  lines.emplace_back();
  std::string group;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    const std::string& line = lines[i];
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const bool heading = line.ends_with(':') && indent < description_column;
    if (heading) {
      group = without_blanks(line.substr(0, line.size() - 1));
    } else if (group.empty() || indent == line.size() || line[indent] == '[') {
      continue;
    } else if (group == "Subcommands" || (verb.empty() && line[indent] != '-')) {
      const HelpOption sub = option_of(line, lines[i + 1], group);
      page.subcommands.emplace_back(sub.names, sub.description);
    } else if (indent < description_column) {
      page.options.push_back(option_of(line, lines[i + 1], group));
    }
  }
  return page;
}

void add_pages(const std::vector<std::string>& verb, std::vector<HelpPage>& pages) {
  pages.push_back(page_of(verb));
  const auto subcommands = pages.back().subcommands;
  for (const auto& [name, what] : subcommands) {
    std::vector<std::string> words = verb;
    words.push_back(name);
    add_pages(words, pages);
  }
}

}  // namespace

std::string HelpPage::name() const {
  std::string text = "demarc";
  for (const std::string& word : verb) text += " " + word;
  return text;
}

const std::vector<HelpPage>& help_pages() {
  static const std::vector<HelpPage> pages = [] {
    std::vector<HelpPage> found;
    add_pages({}, found);
    return found;
  }();
  return pages;
}

}  // namespace demarc::test
