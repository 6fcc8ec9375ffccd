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

std::vector<CLI::Option*>& declared_outputs() {
  static std::vector<CLI::Option*> options;
  return options;
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
  declared_outputs().push_back(option);
  return option->check([](const std::string& given) {
    if (given == "-") return std::string();
    const auto writable = check_writable(given);
    return writable ? std::string() : writable.error().message;
  });
}

Result<void> check_outputs() {
  std::map<std::filesystem::path, std::string> taken;
  for (const CLI::Option* option : declared_outputs()) {
    if (option->count() == 0) continue;
    const auto path = option->as<std::string>();
    if (!replaces_file(path)) continue;
    std::error_code ignored;
    auto place = std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
    const auto [first, fresh] = taken.emplace(std::move(place), option->get_name());
    if (!fresh)
      return invalid_input("{} and {} both name {}", first->second, option->get_name(), path);
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
