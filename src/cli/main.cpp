// Finds the verb that the command line names, runs it, and turns its error into an exit code.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <vector>

#include "demarc/base/standard_error.hpp"
#include "demarc/base/version.hpp"
#include "help.hpp"
#include "limits.hpp"
#include "program.hpp"
#include "refusal.hpp"
#include "verb.hpp"

namespace demarc::cli {

std::vector<Verb>& registered_verbs() {
  static std::vector<Verb> verbs;
  return verbs;
}

RegisterVerb::RegisterVerb(Verb verb) {
  registered_verbs().push_back(std::move(verb));
}

namespace {

// The groups of --help. A verb is in the last one whose first order is not above its own.
struct VerbGroup {
  int first;
  const char* heading;
};
constexpr VerbGroup verb_groups[] = {
    {0, "Share a card"}, {100, "Measure"}, {200, "Laboratory"}, {300, "Help"}};

const char* heading_of(const Verb& verb) {
  const char* heading = "";
  for (const VerbGroup& group : verb_groups) {
    if (verb.order >= group.first) heading = group.heading;
  }
  return heading;
}

constexpr const char* product =
    "Demarc: let several workloads share one GPU without sharing each other's slowdowns.\n"
    "\n"
    "  demarc exec --part 1/2 -- ./detector &\n"
    "  demarc exec --part 2/2 -- ./trainer\n";

// The word behind -q and --color names a verb; nullptr: there is none, or another option first.
const char* verb_named(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-')) return argv[i];
    const std::string_view name = word.substr(0, word.find('='));
    const bool color = name == "--color" || name == "--colour";
    if (color && name == word) ++i;
    if (!color && word != "-q" && word != "--quiet") return nullptr;
  }
  return nullptr;
}

bool is_verb(std::string_view name) {
  const auto& verbs = registered_verbs();
  return std::any_of(verbs.begin(), verbs.end(),
                     [&](const Verb& verb) { return verb.name == name; });
}

void declare_program(CLI::App& app) {
  app.formatter(help_formatter());
  app.option_defaults()->always_capture_default();  // --help shows every default
  app.set_version_flag("-V,--version", std::string("demarc ") + version(),
                       "print the version and exit");
  add_messages(app);
  app.footer(
      "demarc VERB --help shows the options of a verb.\n"
      "Exit codes: 0 done, 1 wrong input, 2 the machine lacks what is asked, 3 a check did not "
      "hold.");
  auto& verbs = registered_verbs();
  std::sort(verbs.begin(), verbs.end(),
            [](const Verb& a, const Verb& b) { return a.order < b.order; });
}

int run_program(int argc, char** argv) {
  CLI::App app{product, "demarc"};
  declare_program(app);
  const char* const named = verb_named(argc, argv);
  if (named != nullptr && !is_verb(named)) {
    say_to_standard_error(fmt::format("demarc: {}\n", unknown_verb_text(named)));
    return 1;
  }
  int exit_code = 0;
  const bool one = argc > 1 && named == argv[1];
  for (const Verb& verb : registered_verbs()) {
    if (one && verb.name != named) continue;  // the others would be declared for nothing
    CLI::App* command = app.add_subcommand(verb.name, verb.summary);
    command->footer("Example: " + verb.example);
    auto action = verb.declare(*command);
    command->group(heading_of(verb));  // which subcommands declared later would take over
    add_messages(*command);
    check_values(*command);
    command->final_callback([action = std::move(action), name = verb.name, &exit_code] {
      Result<void> result = meet_limits();
      if (result) result = check_outputs();
      if (result) result = action();
      if (result) return;
      say_to_standard_error(
          fmt::format("demarc {}: {}\n", name, colored(STDERR_FILENO, result.error().message)));
      exit_code = static_cast<int>(result.error().kind);
    });
  }
  try {
    app.parse(argc, argv);
    if (named == nullptr) throw CLI::CallForHelp();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      say_to_standard_error(refusal_of(app, error));
      return 1;
    }
    app.exit(error);  // prints help or the version
    if (std::cout.flush()) return 0;
    say_to_standard_error("demarc: standard output: cannot be written\n");
    return 1;
  }
  return exit_code;
}

int run_guarded(int argc, char** argv) {
  const char* const verb = argc > 1 ? argv[1] : "";
  try {
    if (answers_completion(argc, argv)) return 0;
    return run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "demarc %s: out of memory: the machine has too little memory for this\n",
                 verb);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "demarc %s: %s\n", verb, error.what());
  }
  return static_cast<int>(ErrorKind::missing_capability);
}

}  // namespace

std::string program_help() {
  CLI::App app{product, "demarc"};
  declare_program(app);
  for (const Verb& verb : registered_verbs()) {
    app.add_subcommand(verb.name, verb.summary)->group(heading_of(verb));
  }
  return app.help();
}

int run_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"demarc"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(all.size() + 1);
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return run_guarded(static_cast<int>(all.size()), pointers.data());
}

}  // namespace demarc::cli

int main(int argc, char** argv) {
  return demarc::cli::run_guarded(argc, argv);
}
