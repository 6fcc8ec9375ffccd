#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "demarc/base/version.hpp"
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

int run_program(int argc, char** argv) {
  CLI::App app{
      "Demarc: let several workloads share one GPU without sharing each other's slowdowns.",
      "demarc"};
  app.set_version_flag("--version", std::string("demarc ") + version());
  app.require_subcommand(1);
  app.footer(
      "Example: demarc topo\nExit codes: 0 done, 1 wrong input, 2 the machine lacks what is asked, "
      "3 a check did not hold.");

  auto& verbs = registered_verbs();
  std::sort(verbs.begin(), verbs.end(),
            [](const Verb& a, const Verb& b) { return a.order < b.order; });
  int exit_code = 0;
  for (const Verb& verb : verbs) {
    CLI::App* command = app.add_subcommand(verb.name, verb.summary);
    command->footer("Example: " + verb.example);
    auto action = verb.declare(*command);
    command->final_callback([action = std::move(action), name = verb.name, &exit_code] {
      const Result<void> result = action();
      if (result) return;
      fmt::print(stderr, "demarc {}: {}\n", name, result.error().message);
      exit_code = static_cast<int>(result.error().kind);
    });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  return exit_code;
}

}  // namespace
}  // namespace demarc::cli

int main(int argc, char** argv) {
  return demarc::cli::run_program(argc, argv);
}
