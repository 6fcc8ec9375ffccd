// Shows progress, writes outputs, and refuses output files that cannot be written.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/base/standard_error.hpp"
#include "verb.hpp"

namespace demarc::cli {

namespace {

bool& quiet_flag() {
  static bool flag = false;
  return flag;
}

std::string& color_use() {
  static std::string use = "auto";
  return use;
}

bool in_color(int file) {
  if (color_use() != "auto") return color_use() == "always";
  const char* const none = std::getenv("NO_COLOR");
  return ::isatty(file) != 0 && (none == nullptr || *none == 0);
}

// Words by which a reader looks for the outcome. The longer ones come first.
struct ColoredWord {
  std::string_view word;
  const char* color;
};
constexpr const char* bad_color = "\x1b[31m";
constexpr const char* good_color = "\x1b[32m";
constexpr const char* doubt_color = "\x1b[33m";
constexpr ColoredWord colored_words[] = {{"DOES NOT HOLD", bad_color},
                                         {"DO NOT HOLD", bad_color},
                                         {"COULD NOT BE PROVED", bad_color},
                                         {"ERROR", bad_color},
                                         {"FAILED", bad_color},
                                         {"FAULT", bad_color},
                                         {"A MODEL ANSWERED", doubt_color},
                                         {"CANNOT BE ISOLATED", bad_color},
                                         {"IN PART", doubt_color},
                                         {"NOT KNOWN", doubt_color},
                                         {"CAN BE ISOLATED", good_color},
                                         {"HOLDS", good_color},
                                         {"HOLD", good_color}};

}  // namespace

bool quiet() {
  return quiet_flag();
}

void add_messages(CLI::App& app) {
  app.add_flag("-q,--quiet", quiet_flag(), "show nothing but results and errors")
      ->group("Messages");
  if (app.get_option_no_throw("--color") == nullptr) {
    app.add_option("--color,--colour", color_use(),
                   "colour outcomes: auto (on a terminal, unless NO_COLOR is set), always or never")
        ->option_text("WHEN=auto")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->group("Messages");
  }
  // A group of options is a part too, without a name.
  for (CLI::App* const part : app.get_subcommands([](CLI::App*) { return true; })) {
    if (!part->get_name().empty()) add_messages(*part);
  }
}

Progress terminal_progress() {
  if (quiet()) return {};
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto begin = std::chrono::steady_clock::now();
  return [terminal, begin, words = ProgressWords()](double share, std::string_view what) mutable {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (terminal) {
      say_to_standard_error(fmt::format("\r\x1b[K{}", words.bar(passed.count(), share, what)));
      if (share >= 1.0) say_to_standard_error("\r\x1b[K");
    } else if (const auto line = words.line(passed.count(), share, what)) {
      say_to_standard_error(fmt::format("{}\n", *line));
    }
  };
}

std::function<void(const std::string& line)> tell_of(std::string verb) {
  return [verb = std::move(verb)](const std::string& line) {
    say_to_standard_error(fmt::format("demarc {}: {}\n", verb, line));
  };
}

std::string colored(int file, std::string text) {
  if (!in_color(file)) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const auto in_word = [&](std::size_t place) {
      return place < text.size() && std::isalpha(static_cast<unsigned char>(text[place])) != 0;
    };
    const auto* const found = std::find_if(
        std::begin(colored_words), std::end(colored_words), [&](const ColoredWord& one) {
          return rest.starts_with(one.word) && !in_word(at - 1) && !in_word(at + one.word.size());
        });
    if (found == std::end(colored_words)) {
      out += text[at++];
      continue;
    }
    out += fmt::format("{}{}\x1b[0m", found->color, found->word);
    at += found->word.size();
  }
  return out;
}

std::string command_line() {
  std::string text = read_file("/proc/self/cmdline").value_or("");
  while (!text.empty() && text.back() == 0) text.pop_back();
  std::replace(text.begin(), text.end(), char{0}, ' ');
  return text;
}

namespace {

struct DeclaredOutput {
  CLI::Option* option;
  bool named;  // its values are NAME=FILE
};

std::vector<DeclaredOutput>& declared_outputs() {
  static std::vector<DeclaredOutput> options;
  return options;
}

std::string fault_of_output(const std::string& path) {
  const auto writable = check_writable(path);
  return writable ? std::string() : writable.error().message;
}

// Two results may go to one pipe or device (/dev/null), one after the other.
bool replaces_file(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

}  // namespace

CLI::Option* add_output(CLI::App& app, const std::string& name, std::string& path,
                        const std::string& help) {
  CLI::Option* option = app.add_option(name, path, help);
  declared_outputs().push_back({option, false});
  return option->check([](const std::string& given) {
    return given == "-" ? std::string() : fault_of_output(given);
  });
}

CLI::Option* add_output(CLI::App& app, std::string& path) {
  return add_output(app, "-o,--output", path, "write to this file (default: standard output)");
}

CLI::Option* add_json(CLI::App& app, std::string& path, const std::string& what,
                      std::initializer_list<std::string_view> schemas) {
  CLI::Option* option = app.add_flag(
      "--json{-}", path,
      fmt::format("{} as JSON ({}); with FILE, text too", what, fmt::join(schemas, ", ")));
  declared_outputs().push_back({option, false});
  return option->option_text("[=FILE]")->check([](const std::string& given) {
    return given == "-" ? std::string() : fault_of_output(given);
  });
}

std::string file_of_named_output(const std::string& value) {
  return value.substr(value.find('=') + 1);
}

CLI::Option* add_named_outputs(CLI::App& app, const std::string& name,
                               std::vector<std::string>& values, const std::string& help) {
  CLI::Option* option = app.add_option(name, values, help);
  declared_outputs().push_back({option, true});
  option->option_text("NAME=FILE")->allow_extra_args(false);
  return option->check([](const std::string& given) {
    const auto equals = given.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == given.size())
      return fmt::format("'{}' is not NAME=FILE", given);
    const std::string file = file_of_named_output(given);
    if (file == "-")
      return fmt::format("{}: standard output takes the report; name a file or a pipe", given);
    return fault_of_output(file);
  });
}

Result<void> check_outputs() {
  std::map<std::filesystem::path, std::string> taken;
  for (const DeclaredOutput& output : declared_outputs()) {
    for (const std::string& value : output.option->results()) {
      const std::string path = output.named ? file_of_named_output(value) : value;
      if (!replaces_file(path)) continue;
      const std::string name = output.option->get_name();
      std::error_code ignored;
      auto place = std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
      const auto [first, fresh] = taken.emplace(std::move(place), name);
      if (!fresh) return invalid_input("{} and {} both name {}", first->second, name, path);
    }
  }
  return {};
}

Result<void> emit_result(const std::string& json, const std::string& output,
                         const std::function<std::string()>& to_json,
                         const std::function<std::string()>& to_text) {
  if (json == "-") return emit(output, to_json());
  if (!json.empty()) DEMARC_CHECK(write_file(json, to_json()));
  const bool shown = output.empty() || output == "-";
  return emit(output, shown ? colored(STDOUT_FILENO, to_text()) : to_text());
}

Result<void> emit(const std::string& path, std::string_view content) {
  if (!path.empty() && path != "-") return write_file(path, content);
  if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size() ||
      std::fflush(stdout) != 0) {
    return invalid_input("standard output: cannot be written");
  }
  return {};
}

}  // namespace demarc::cli
