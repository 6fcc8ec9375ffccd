// A verb of the program: one file declares its options and hands them to the library. To add one,
// write src/cli/<verb>.cpp with a Verb and register it with a RegisterVerb at namespace scope;
// nothing else changes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"

namespace demarc::cli {

struct Verb {
  int order = 0;        // position in --help; the hundreds are the group (verb_groups)
  std::string name;     // demarc <name>
  std::string summary;  // one line
  std::string example;  // shown at the end of its --help

  // Declares the options on `app` and returns what to run once they are parsed.
  std::function<std::function<Result<void>()>(CLI::App& app)> declare;
};

class RegisterVerb {
 public:
  explicit RegisterVerb(Verb verb);
};

// -q: nothing but results and errors is shown.
[[nodiscard]] bool quiet();
// Declares -q and --color for `app` and its subcommands. A --color of its own stays.
void add_messages(CLI::App& app);

// Progress on standard error: a bar on a terminal, elsewhere a line every ten seconds, under -q
// nothing.
[[nodiscard]] Progress terminal_progress();

// Says on standard error what happened to a program or a result: what was refused, what is in
// doubt. -q does not hide it.
[[nodiscard]] std::function<void(const std::string& line)> tell_of(std::string verb);

// missing_capability where `device` is a card and this machine has no driver; the message names a
// simulated GPU, which serves the verb, too.
[[nodiscard]] Result<void> check_driver(std::string_view device);

// Says on standard error, as tell_of() does, what demarc serve and demarc exec have of the card,
// before a verb measures on all of `device`; it says nothing if that is not a card. Errors are
// those of cuda::what_others_have().
[[nodiscard]] Result<void> tell_of_others(std::string verb, std::string_view device);

// With the colours of a terminal, as --color says: always, never, or where `file` is a terminal and
// NO_COLOR is not set.
[[nodiscard]] std::string colored(int file, std::string text);

// This program's command line, arguments divided by blanks: part of every result's context.
[[nodiscard]] std::string command_line();

// Declares an option that names a file to write. That it can be written is found out while the
// options are read, before any work; "-" is standard output.
CLI::Option* add_output(CLI::App& app, const std::string& name, std::string& path,
                        const std::string& help);

// -o,--output: the file for what would go to standard output.
CLI::Option* add_output(CLI::App& app, std::string& path);

// --json[=FILE]: `path` is "-", standard output, where no file is named. `what` the JSON holds;
// `schemas` are its ids, each a row of docs/command-line.md.
CLI::Option* add_json(CLI::App& app, std::string& path, const std::string& what,
                      std::initializer_list<std::string_view> schemas);

// The same for an option that may be repeated and gives files to what has a name: NAME=FILE.
// Standard output is refused: it takes the report.
CLI::Option* add_named_outputs(CLI::App& app, const std::string& name,
                               std::vector<std::string>& values, const std::string& help);
// For a value that add_named_outputs() let through.
[[nodiscard]] std::string file_of_named_output(const std::string& value);

// The type_name() of an option whose value is a percentage: "5%" and "5" are the same there.
inline constexpr const char* percent_type = "PERCENT";

// For all options of `app` and of its subcommands, before they are read: numbers are whole words
// within their type's range, those with a point finite and not negative, and no value is empty.
void check_values(CLI::App& app);

// Once the options are read: no two of those options may name the same file.
[[nodiscard]] Result<void> check_outputs();

// A result as JSON, where `json` (of add_json) asks for it, and as text, unless the JSON takes its
// place. What goes to no file of its own goes to `output`, as emit() takes it.
[[nodiscard]] Result<void> emit_result(const std::string& json, const std::string& output,
                                       const std::function<std::string()>& to_json,
                                       const std::function<std::string()>& to_text);

// Writes to standard output, or atomically to `path` unless it is empty or "-".
[[nodiscard]] Result<void> emit(const std::string& path, std::string_view content);

}  // namespace demarc::cli
