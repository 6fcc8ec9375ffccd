// Follows a program's name to its executable, and that to its libraries.
#include "demarc/exec/program_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/base/process.hpp"
#include "demarc/fatbin/linked.hpp"
#include "demarc/guest/code_files.hpp"
#include "python_packages.hpp"

namespace demarc::cuda {
namespace {

namespace fs = std::filesystem;

constexpr int max_scripts = 4;  // that name each other as interpreters, as Linux has it
constexpr std::size_t max_line_bytes = 256;
constexpr std::size_t max_list_bytes = std::size_t{4} << 20U;

bool is_set_user(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0;
}

Result<std::string> executable_of(const std::string& name) {
  std::string path = name;
  if (name.find('/') == std::string::npos) {
    path = find_program(name);
    if (path.empty() && fs::exists(name)) {
      return invalid_input("{}: is not in PATH; for the file in this folder give ./{}", name, name);
    }
    if (path.empty()) return invalid_input("{}: there is no such program in PATH", name);
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return invalid_input("{}: there is no such program", path);
  if (!S_ISREG(status.st_mode)) return invalid_input("{}: is not a file", path);
  if (::access(path.c_str(), X_OK) != 0) {
    return invalid_input(
        "{}: is not executable; chmod +x makes it so, or name the program that runs it, such as "
        "python3 {}",
        path, path);
  }
  return path;
}

// The words of a #! line: its interpreter, and one argument. Nothing: there is no such line.
std::vector<std::string> interpreter_line(const std::string& content) {
  if (!content.starts_with("#!")) return {};
  std::istringstream line(content.substr(2, content.find('\n') - 2));
  std::vector<std::string> words(1);
  line >> words[0] >> std::ws;
  if (std::string rest; std::getline(line, rest)) {
    rest.erase(rest.find_last_not_of(" \t\r") + 1);
    if (!rest.empty()) words.push_back(rest);
  }
  return words;
}

// "/usr/bin/env [-S] python3 -u": `env` starts what follows.
void look_through_env(std::vector<std::string>& words) {
  if (fs::path(words[0]).filename() != "env" || words.size() < 2) return;
  std::istringstream rest(words[1]);
  std::vector<std::string> behind;
  for (std::string word; rest >> word;) behind.push_back(word);
  if (!behind.empty() && behind[0] == "-S") behind.erase(behind.begin());
  if (!behind.empty() && behind[0][0] != '-' && behind[0].find('=') == std::string::npos)
    words = behind;
}

// Only loaders of the system are started: another one could be any program.
bool is_usual_place(const std::string& loader) {
  const fs::path path = fs::path(loader).lexically_normal();
  if (!path.is_absolute()) return false;
  auto part = std::next(path.begin());
  if (part != path.end() && *part == "usr") ++part;
  return part != path.end() && part->string().starts_with("lib");
}

class Finder {
 public:
  explicit Finder(double limit_seconds) : limit_(limit_seconds) {}

  Result<ProgramFiles> of_command(const std::vector<std::string>& command) {
    if (command.empty()) return invalid_input("no program was given");
    found_.command = command;
    DEMARC_CHECK(follow(command, 0));
    return std::move(found_);
  }
  Result<ProgramFiles> of_process(std::int64_t pid);

 private:
  // `command` with its interpreter in front, as the kernel starts it.
  Result<void> follow(std::vector<std::string> command, int depth) {
    DEMARC_TRY(const std::string path, executable_of(command.front()));
    DEMARC_TRY(const std::string begin, read_file(path, max_line_bytes));
    const std::vector<std::string> arguments(command.begin() + 1, command.end());
    if (is_python(path) && !is_set_user(path)) {
      if (begin.starts_with("\x7f"
                            "ELF"))
        DEMARC_CHECK(add_program(path));
      add_python_packages(path, arguments, limit_, found_);
      add_libraries_of_interpreter(path);
      return {};
    }
    if (begin.starts_with("\x7f"
                          "ELF"))
      return add_program(path);
    std::vector<std::string> words = interpreter_line(begin);
    if (words.empty() || words[0].empty()) {
      return invalid_input(
          "{}: is neither an ELF executable nor a script whose first line names its interpreter",
          path);
    }
    if (depth == max_scripts) {
      return invalid_input("{}: more than {} scripts name each other as interpreters", path,
                           max_scripts);
    }
    look_through_env(words);
    if (!is_python(words[0])) {
      found_.unchecked.push_back(
          {path, fmt::format("it is a script of {}, and what it starts is not known",
                             fs::path(words[0]).filename().string())});
    }
    words.push_back(path);
    words.insert(words.end(), arguments.begin(), arguments.end());
    return follow(std::move(words), depth + 1);
  }

  Result<void> add_program(const std::string& path) {
    add(path);
    if (is_set_user(path)) {
      found_.unchecked.push_back(
          {path, "it runs as another user (setuid or setgid), so its libraries are not asked for"});
      return {};
    }
    DEMARC_TRY(const std::string content, read_file(path));
    DEMARC_TRY(const fatbin::Linked linked, fatbin::linked_of(content, path));
    if (linked.interpreter.empty()) {
      if (!linked.needed.empty()) {
        found_.unchecked.push_back({path, "it names libraries, but no dynamic loader for them"});
      }
      return {};
    }
    if (!is_usual_place(linked.interpreter)) {
      found_.unchecked.push_back(
          {path, fmt::format("its dynamic loader {} does not lie in /lib or /usr/lib, so it is not "
                             "started to ask for libraries",
                             linked.interpreter)});
      return {};
    }
    found_.loader = linked.interpreter;
    for (const std::string& library :
         libraries_of(linked.interpreter, path, limit_, found_.unchecked)) {
      add(library);
    }
    return {};
  }

  // A script of that name starts the interpreter, as pyenv's do.
  void add_libraries_of_interpreter(const std::string& path) {
    if (!found_.loader.empty()) return;
    if (found_.files.empty() || found_.files.front().path == path) return;
    const std::string executable = found_.files.front().path;
    if (const auto added = add_program(executable); !added)
      found_.unchecked.push_back({executable, added.error().message});
  }

  void add(const std::string& path) {
    std::error_code ignored;
    std::string canonical = fs::weakly_canonical(path, ignored).string();
    const auto known = [&canonical](const ProgramFile& file) { return file.path == canonical; };
    if (std::none_of(found_.files.begin(), found_.files.end(), known))
      found_.files.push_back({std::move(canonical), {}});
  }

  double limit_;
  ProgramFiles found_;
};

// Its files are seen as the process sees them.
Result<ProgramFiles> Finder::of_process(std::int64_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  if (pid < 1 || !fs::exists(folder))
    return invalid_input("--pid {}: there is no such process", pid);
  const auto files = code_files_of(fmt::to_string(pid));
  if (!files) {
    return missing_capability(
        "--pid {}: {}/maps cannot be read, or is empty: ask as the user whose process it is, or as "
        "root",
        pid, folder);
  }
  std::error_code ignored;
  const auto space = [&ignored](const std::string& of) {
    return fs::read_symlink(fmt::format("/proc/{}/ns/mnt", of), ignored);
  };
  const std::string root = space("self") == space(fmt::to_string(pid)) ? "" : folder + "/root";
  const std::string program = fs::read_symlink(folder + "/exe", ignored).string();
  // Behind the root of another process, a link would be followed from that of this one.
  if (files->contains(program)) found_.files.push_back({root + program, {}});
  for (const std::string& file : *files) {
    if (file.ends_with(" (deleted)")) {
      found_.unchecked.push_back({file, "the process has it, but the file is gone"});
    } else if (file != program) {
      found_.files.push_back({root + file, {}});
    }
  }
  std::istringstream words(read_file(folder + "/cmdline").value_or(""));
  for (std::string word; std::getline(words, word, '\0');) found_.command.push_back(word);
  if (found_.command.empty()) found_.command.push_back(program);
  return std::move(found_);
}

}  // namespace

// "    libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f1b9c000000)"
std::vector<std::string> libraries_of(const std::string& loader, const std::string& file,
                                      double limit_seconds, std::vector<Unchecked>& unchecked) {
  const auto unknown = [&](const std::string& why) {
    unchecked.push_back({file, "its libraries are not known: " + why});
    return std::vector<std::string>();
  };
  ProcessOptions options;
  options.output = ChildStream::kept;
  options.error = ChildStream::null;
  options.kept_bytes = max_list_bytes;
  // A name that begins with "-" would be an option.
  std::error_code ignored;
  auto process =
      Process::spawn({loader, "--list", fs::weakly_canonical(file, ignored).string()}, options);
  if (!process) return unknown(process.error().message);
  const auto end = process->wait(limit_seconds);
  if (!end) return unknown(fmt::format("{} did not list them within {} s", loader, limit_seconds));
  std::vector<std::string> libraries;
  std::istringstream lines(process->kept());
  for (std::string line; std::getline(lines, line);) {
    const auto name = line.find_first_not_of(" \t");
    if (name == std::string::npos) continue;
    const auto arrow = line.find(" => ");
    const auto path = arrow == std::string::npos ? name : arrow + 4;
    if (line.find("not found", path) == path) {
      unchecked.push_back({line.substr(name, arrow - name), "the dynamic loader does not find it"});
    } else if (line[path] == '/') {
      libraries.push_back(line.substr(path, line.rfind(" (") - path));
    }
  }
  if (end->exit_code != 0 && libraries.empty())
    return unknown(fmt::format("{} does not list them ({})", loader, end->words()));
  return libraries;
}

Result<ProgramFiles> find_program_files(const ProgramQuery& query) {
  Finder finder(query.limit_seconds);
  if (!query.pid) return finder.of_command(query.command);
  if (!query.command.empty()) {
    return invalid_input("--pid looks at a process that runs; give no program with it");
  }
  return finder.of_process(*query.pid);
}

}  // namespace demarc::cuda
