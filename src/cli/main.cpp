// Finds the verb that the command line names, runs it, and turns its error into an exit code.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <vector>

#include "demarc/base/near_names.hpp"
#include "demarc/base/standard_error.hpp"
#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "help.hpp"
#include "limits.hpp"
#include "program.hpp"
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

// Of the words of the command line the first names a verb.
const char* unknown_verb(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return nullptr;
  const auto& verbs = registered_verbs();
  const bool known = std::any_of(verbs.begin(), verbs.end(),
                                 [&](const Verb& verb) { return verb.name == argv[1]; });
  return known ? nullptr : argv[1];
}

// Of the words that no option takes: the options of the verb that one may be a slip of.
std::string slip_of_extra(const CLI::App& app) {
  const auto verbs = app.get_subcommands();
  if (verbs.empty()) return "";
  std::vector<std::string> names;
  const auto add_options = [&](const CLI::App& one) {
    for (const CLI::Option* option : one.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  };
  add_options(*verbs.front());
  for (const CLI::App* sub : verbs.front()->get_subcommands()) add_options(*sub);
  for (const std::string& extra : app.remaining(true)) {
    const std::string word = extra.substr(0, extra.find('='));
    if (!word.starts_with("--")) continue;
    if (std::string slip = did_you_mean(word, names); !slip.empty()) return slip;
  }
  return "";
}

// The file of --json stands behind an equals sign: verbs take words that no option takes.
std::string cure_of_extra(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) != "--json" || argv[i + 1][0] == '-') continue;
    return fmt::format("; to name a file for the JSON write --json={}", argv[i + 1]);
  }
  return "";
}

int run_program(int argc, char** argv) {
  CLI::App app{
      "Demarc: let several workloads share one GPU without sharing each other's slowdowns.",
      "demarc"};
  app.formatter(help_formatter());
  app.option_defaults()->always_capture_default();  // --help shows every default
  app.set_version_flag("-V,--version", std::string("demarc ") + version(),
                       "print the version and exit");
  app.require_subcommand(1);
  app.footer(
      "Example: demarc topo\nExit codes: 0 done, 1 wrong input, 2 the machine lacks what is asked, "
      "3 a check did not hold.");

  auto& verbs = registered_verbs();
  std::sort(verbs.begin(), verbs.end(),
            [](const Verb& a, const Verb& b) { return a.order < b.order; });
  if (const char* unknown = unknown_verb(argc, argv)) {
    std::vector<std::string> known;
    known.reserve(verbs.size());
    for (const Verb& verb : verbs) known.push_back(verb.name);
    say_to_standard_error(fmt::format("demarc: there is no verb '{}'; the verbs are: {}{}\n",
                                      unknown, joined(known, ", "), did_you_mean(unknown, known)));
    return 1;
  }
  int exit_code = 0;
  const bool one = argc > 1 && argv[1][0] != '-';
  for (const Verb& verb : verbs) {
    if (one && verb.name != argv[1]) continue;  // the others would be declared for nothing
    CLI::App* command = app.add_subcommand(verb.name, verb.summary);
    command->footer("Example: " + verb.example);
    auto action = verb.declare(*command);
    add_quiet(*command);
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
  } catch (const CLI::ConversionError& error) {
    // That it is a number was found out before.
    say_to_standard_error(fmt::format("demarc {}: {}: this value is out of the option's range\n",
                                      argv[1], error.what()));
    return 1;
  } catch (const CLI::ExtrasError& error) {
    say_to_standard_error(fmt::format("demarc {}: {}{}{}\n", argv[1], error.what(),
                                      cure_of_extra(argc, argv), slip_of_extra(app)));
    return 1;
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error) == 0 ? 0 : 1;
    if (std::cout.flush()) return code;
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
