// demarc help VERB: the same as demarc VERB --help, or as a manual page.
#include <algorithm>
#include <memory>

#include "demarc/base/near_names.hpp"
#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "help.hpp"
#include "program.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct HelpOptions {
  std::vector<std::string> words;
  bool man = false;
};

// As it stands: a backslash is no escape, and a point at the beginning of a line no request.
std::string roff_of(const std::string& text) {
  std::string out;
  bool begins = true;
  for (const char letter : text) {
    if (begins && (letter == '.' || letter == '\'')) out += "\\&";
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
    begins = letter == '\n';
  }
  return out;
}

std::string man_page(const Verb& verb) {
  CLI::App app{verb.summary, "demarc " + verb.name};
  app.formatter(help_formatter());
  app.option_defaults()->always_capture_default();
  const auto action = verb.declare(app);
  add_quiet(app);
  app.footer("Example: " + verb.example);
  std::string text = fmt::format(
      ".TH DEMARC\\-{} 1 \"\" \"demarc {}\"\n.SH NAME\ndemarc\\-{} \\- {}\n.SH DESCRIPTION\n.nf\n",
      roff_of(verb.name), version(), roff_of(verb.name), roff_of(verb.summary));
  text += roff_of(app.help());
  for (const CLI::App* sub : app.get_subcommands({})) {
    text += fmt::format(".fi\n.SH {}\n.nf\n", roff_of(sub->get_name()));
    text += roff_of(sub->help("demarc " + verb.name + " " + sub->get_name()));
  }
  return text +
         ".fi\n.SH \"EXIT STATUS\"\n.nf\n0  done\n1  wrong input\n2  the machine lacks what "
         "is asked\n3  a check did not hold\n.fi\n";
}

Result<void> show_help(const HelpOptions& options) {
  std::vector<std::string> words = options.words;
  if (options.man && words.size() != 1) {
    return invalid_input("--man writes the page of one verb: name it");
  }
  std::vector<std::string> known;
  for (const Verb& verb : registered_verbs()) {
    if (options.man && verb.name == words.front()) return emit("", man_page(verb));
    known.push_back(verb.name);
  }
  if (!words.empty() && std::find(known.begin(), known.end(), words.front()) == known.end()) {
    return invalid_input("there is no verb '{}'; the verbs are: {}{}", words.front(),
                         joined(known, ", "), did_you_mean(words.front(), known));
  }
  words.emplace_back("--help");
  if (run_arguments(words) == 0) return {};
  return invalid_input("'{}' has no such subcommand", words.front());
}

const RegisterVerb help_of_verbs({
    .order = 200,
    .name = "help",
    .summary = "show the options of a verb, as demarc VERB --help does",
    .example = "demarc help probe memory",
    .declare = [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<HelpOptions>();
      app.add_option("verb", options->words, "verb, and its subcommand if it has one")
          ->option_text("VERB ...");
      app.add_flag("--man", options->man, "print the manual page of the verb, for man");
      return [options] { return show_help(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
