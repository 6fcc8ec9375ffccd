// demarc help VERB: the same as demarc VERB --help, or as a manual page.
#include <algorithm>
#include <cctype>
#include <memory>

#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "help.hpp"
#include "program.hpp"
#include "refusal.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct HelpOptions {
  std::vector<std::string> words;
  bool man = false;
};

// As it stands: a backslash is not an escape, and a point at the beginning of a line no request.
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

std::string in_capitals(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

std::string man_header(const std::string& page, const std::string& summary) {
  return fmt::format(".TH {} 1 \"\" \"demarc {}\"\n.SH NAME\n{} \\- {}\n.SH DESCRIPTION\n.nf\n",
                     roff_of(in_capitals(page)), version(), roff_of(page), roff_of(summary));
}

constexpr const char* man_footer =
    ".fi\n.SH \"EXIT STATUS\"\n.nf\n0  done\n1  wrong input\n2  the machine lacks what is asked\n"
    "3  a check did not hold\n.fi\n";

std::string man_page(const Verb& verb) {
  const std::string command = "demarc " + verb.name;
  CLI::App app{verb.summary, command};
  app.formatter(help_formatter());
  app.option_defaults()->always_capture_default();
  const auto action = verb.declare(app);
  add_messages(app);
  app.footer("Example: " + verb.example);
  std::string text = man_header("demarc-" + verb.name, verb.summary);
  text += roff_of(app.help());
  for (const CLI::App* sub : app.get_subcommands({})) {
    text += fmt::format(".fi\n.SH {}\n.nf\n", roff_of(sub->get_name()));
    text += roff_of(sub->help(command));  // which adds the subcommand's name
  }
  return text + man_footer;
}

// The page of the program: what --help says, and where the verbs' pages are.
std::string man_page_of_program(const std::string& help) {
  std::string text = man_header("demarc", "let several workloads share one GPU") + roff_of(help);
  text += ".fi\n.SH \"SEE ALSO\"\n";
  std::vector<std::string> pages;
  for (const Verb& verb : registered_verbs())
    pages.push_back(roff_of("demarc-" + verb.name + "(1)"));
  return text + joined(pages, ",\n") + "\n.nf\n" + man_footer;
}

Result<void> show_help(const HelpOptions& options) {
  std::vector<std::string> words = options.words;
  if (options.man && words.empty()) return emit("", man_page_of_program(program_help()));
  if (options.man && words.size() != 1) {
    return invalid_input("--man writes the page of the program or of one verb, not of {}",
                         joined(words, " "));
  }
  std::vector<std::string> known;
  for (const Verb& verb : registered_verbs()) {
    if (options.man && verb.name == words.front()) return emit("", man_page(verb));
    known.push_back(verb.name);
  }
  if (!words.empty() && std::find(known.begin(), known.end(), words.front()) == known.end()) {
    return invalid_input("{}", unknown_verb_text(words.front()));
  }
  words.emplace_back("--help");
  if (run_arguments(words) == 0) return {};
  return invalid_input("'{}' has no such subcommand", words.front());
}

const RegisterVerb help_of_verbs({
    .order = 301,
    .name = "help",
    .summary = "show the options of a verb, as demarc VERB --help does; print manual pages",
    .example = "demarc help probe memory",
    .declare = [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<HelpOptions>();
      app.add_option("verb", options->words, "verb, and its subcommand if it has one")
          ->option_text("VERB ...");
      app.add_flag("--man", options->man,
                   "print the manual page of the verb, or of the program, for man");
      return [options] { return show_help(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
