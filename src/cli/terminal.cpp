// Shows progress, writes outputs, and refuses output files that cannot be written.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <vector>

#include "demarc/base/files.hpp"
#include "verb.hpp"

namespace demarc::cli {

std::function<void(double, std::string_view)> terminal_progress() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [](double share, std::string_view what) {
    constexpr int width = 30;
    const int filled = static_cast<int>(share * width);
    fmt::print(stderr, "\r\x1b[K[{:{}}] {:3.0f}% {}",
               std::string(static_cast<std::size_t>(filled), '#'), width, share * 100, what);
    if (share >= 1.0) fmt::print(stderr, "\r\x1b[K");
  };
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

CLI::Option* check_output(CLI::Option* option) {
  declared_outputs().push_back({option, false});
  return option->check([](const std::string& given) {
    return given == "-" ? std::string() : fault_of_output(given);
  });
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
  return check_output(app.add_option(name, path, help));
}

CLI::Option* add_json(CLI::App& app, std::string& path) {
  // A flag takes no word behind it, but what stands behind its "=".
  return check_output(app.add_flag("--json{-}", path, "JSON, into a file with --json=FILE"));
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

Result<void> emit(const std::string& path, std::string_view content) {
  if (!path.empty() && path != "-") return write_file(path, content);
  if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size() ||
      std::fflush(stdout) != 0) {
    return invalid_input("standard output: cannot be written");
  }
  return {};
}

}  // namespace demarc::cli
