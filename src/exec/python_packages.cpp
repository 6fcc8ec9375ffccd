// Asks a Python interpreter for packages, and lists the libraries in their folders.
#include "python_packages.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>

#include "demarc/base/json.hpp"
#include "demarc/base/process.hpp"
#include "python_packages_text.hpp"

namespace demarc::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_answer_bytes = std::size_t{16} << 20U;

// What a command line of Python says.
struct PythonCommand {
  std::vector<std::string> flags;  // that decide where packages are looked for
  std::vector<std::string> scripts;
  std::vector<std::string> modules;
  std::optional<std::string> text;
  std::optional<std::string> folder;  // in which the script lies
};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// "-Es": options without a value, some of which decide where packages are looked for.
bool decides_places(const std::string& option) {
  return option.find_first_not_of("EIPSsBuvqObd", 1) == std::string::npos;
}

// A folder is a program if it has this file.
std::string script_in(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? path + "/__main__.py" : path;
}

PythonCommand read_command(const std::vector<std::string>& arguments) {
  PythonCommand command;
  auto at = arguments.begin();
  for (; at != arguments.end() && at->starts_with("-") && *at != "-"; ++at) {
    const bool has_next = at + 1 != arguments.end();
    if (*at == "--") continue;
    if (at->starts_with("-m") || at->starts_with("-c")) {
      const bool joined = at->size() > 2;
      if (!joined && !has_next) return command;
      const std::string value = joined ? at->substr(2) : *++at;
      if (arguments[static_cast<std::size_t>(at - arguments.begin()) - (joined ? 0 : 1)][1] ==
          'm') {
        command.modules.push_back(value);
      } else {
        command.text = value;
      }
      ++at;
      break;
    }
    if ((*at == "-W" || *at == "-X") && has_next) {
      ++at;
    } else if (decides_places(*at)) {
      command.flags.push_back(*at);
    }
  }
  const bool named = command.text || !command.modules.empty();
  if (!named && at != arguments.end() && *at != "-") {
    command.scripts.push_back(script_in(*at));
    const fs::path script = fs::absolute(command.scripts.back()).lexically_normal();
    std::error_code ignored;
    command.folder = fs::weakly_canonical(script, ignored).parent_path().string();
    ++at;
  }
  // A launcher such as torchrun runs them.
  for (; at != arguments.end(); ++at) {
    if (at->ends_with(".py") && is_file(*at)) command.scripts.push_back(*at);
  }
  return command;
}

Result<Json> ask(const std::string& interpreter, const PythonCommand& command,
                 double limit_seconds) {
  const Json question{{"scripts", command.scripts},
                      {"modules", command.modules},
                      {"text", command.text ? Json(*command.text) : Json()},
                      {"folder", command.folder ? Json(*command.folder) : Json()}};
  std::vector<std::string> argv{interpreter};
  argv.insert(argv.end(), command.flags.begin(), command.flags.end());
  argv.insert(argv.end(), {"-c", std::string(python_packages_text), json_text(question)});
  ProcessOptions options;
  options.set = {{"PYTHONDONTWRITEBYTECODE", "1"}};
  options.output = ChildStream::kept;
  options.error = ChildStream::null;
  options.kept_bytes = max_answer_bytes;
  DEMARC_TRY(Process process, Process::spawn(argv, options));
  const auto end = process.wait(limit_seconds);
  if (!end) {
    return check_failed("the interpreter did not answer which packages it has within {} s",
                        limit_seconds);
  }
  if (end->exit_code != 0)
    return check_failed("the interpreter did not say which packages it has ({})", end->words());
  const std::string said = process.kept();
  // What the interpreter's own start prints stands in front.
  const auto line = said.find_last_of('\n', said.size() < 2 ? std::string::npos : said.size() - 2);
  Json answer = own_json(line == std::string::npos ? said : said.substr(line + 1));
  if (answer.is_discarded() || !answer.is_object())
    return check_failed("the interpreter's answer about packages cannot be read");
  return answer;
}

// A pipe, a socket or a device of such a name is loaded by no program, and reading it may not end.
bool may_hold_code(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored) || fs::is_other(file, ignored)) return false;
  const std::string name = file.filename();
  return name.ends_with(".so") || name.find(".so.") != std::string::npos ||
         name.ends_with(".cubin") || name.ends_with(".fatbin") || name.ends_with(".ptx");
}

void add_file(const fs::path& file, const std::string& package, ProgramFiles& found) {
  std::error_code ignored;
  const std::string path = fs::weakly_canonical(file, ignored).string();
  const bool known = std::any_of(found.files.begin(), found.files.end(),
                                 [&path](const ProgramFile& one) { return one.path == path; });
  if (!known) found.files.push_back({path, package});
}

void add_place(const std::string& place, const std::string& package, ProgramFiles& found) {
  std::error_code fault;
  if (!fs::is_directory(place, fault)) {
    if (may_hold_code(place)) add_file(place, package, found);
    return;
  }
  std::set<fs::path> files;  // in the order of their names
  for (auto at = fs::recursive_directory_iterator(place, fault); at != fs::end(at);
       at.increment(fault)) {
    if (fault) break;
    if (may_hold_code(at->path())) files.insert(at->path());
  }
  if (fault) found.unchecked.push_back({place, "its files cannot be listed: " + fault.message()});
  for (const fs::path& file : files) add_file(file, package, found);
}

}  // namespace

bool is_python(const std::string& program) {
  const std::string name = fs::path(program).filename();
  constexpr std::string_view start = "python";
  return name.starts_with(start) &&
         std::all_of(name.begin() + start.size(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

void add_python_packages(const std::string& interpreter, const std::vector<std::string>& arguments,
                         double limit_seconds, ProgramFiles& found) {
  const PythonCommand command = read_command(arguments);
  if (command.scripts.empty() && command.modules.empty() && !command.text) {
    found.unchecked.push_back({interpreter, "no script was named that it would run"});
  }
  const auto answer = ask(interpreter, command, limit_seconds);
  if (!answer) {
    found.unchecked.push_back({"the packages of Python", answer.error().message});
    return;
  }
  try {
    // The name may be that of a script that starts the interpreter.
    if (const std::string executable = answer->at("executable"); !executable.empty())
      add_file(executable, {}, found);
    for (const Json& package : answer->at("packages")) {
      found.packages.push_back(package.at(0));
      for (const Json& place : package.at(1)) add_place(place, found.packages.back(), found);
    }
    for (const Json& name : answer->at("missing")) found.missing.push_back(name);
    for (const Json& problem : answer->at("problems"))
      found.unchecked.push_back({problem.at(0), problem.at(1)});
  } catch (const Json::exception& fault) {
    found.unchecked.push_back({"the packages of Python", fault.what()});
  }
}

}  // namespace demarc::cuda
