// How fast PTX becomes IR, and how much memory that takes, on a module of at least 20 MB made of
// the bundled kernels' PTX. Targets: 150 MB/s on one core, peak memory at most 12 times the text.
// Beside them, from the same run: copying the text and counting its lines, which no parser can
// beat.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "paths.hpp"

namespace {

constexpr std::size_t wanted_bytes = 24'000'000;
constexpr int repetitions = 7;

// Renames what must be unique in a module: functions, variables and labels get a suffix a copy.
void append_renamed(std::string& out, const demarc::ptx::Module& module, int copy) {
  std::string text = print(module);
  text.erase(0, text.find("\n\n") + 2);  // the preamble
  std::vector<std::string> names;
  for (const auto& function : module.functions) names.emplace_back(function.name);
  for (const auto& variable : module.variables) names.emplace_back(variable.name);
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
  };
  const std::string suffix = fmt::format("_copy{}", copy);
  for (std::size_t at = 0; at < text.size();) {
    if (!is_word(text[at])) {
      out += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(at, end - at);
    out += word;
    const bool is_register = at > 0 && text[at - 1] == '%';
    if (!is_register && std::find(names.begin(), names.end(), word) != names.end()) out += suffix;
    at = end;
  }
}

std::string make_module() {
  std::string out = ".version 8.0\n.target sm_90\n.address_size 64\n\n";
  std::vector<demarc::ptx::Module> modules;
  for (const auto& entry :
       std::filesystem::directory_iterator(demarc::test::source_dir() / "kernels" / "ptx")) {
    auto module = demarc::ptx::load_module(entry.path());
    if (module) modules.push_back(std::move(*module));
  }
  if (modules.empty()) return out;
  int copy = 0;
  std::vector<std::string> bodies;
  while (out.size() < wanted_bytes) {
    for (const auto& module : modules) append_renamed(out, module, copy++);
  }
  return out;
}

// Processor time, so that other work on the machine does not count.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Work>
double seconds_of(Work&& work) {
  double best = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    const double start = processor_seconds();
    work();
    best = std::min(best, processor_seconds() - start);
  }
  return best;
}

// Peak resident set of a child that does the work, less that of one that only holds the text, plus
// the text: bytes.
std::size_t peak_of_child(const std::string& text, bool parses) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::string copy = text;
    if (parses) {
      const auto result = demarc::ptx::parse(std::move(copy), "bench");
      ::_exit(result.diagnostics.ok() ? 0 : 1);
    }
    ::_exit(copy.empty() ? 1 : 0);
  }
  struct rusage usage {};
  int status = 0;
  ::wait4(child, &status, 0, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

int main() {
  const std::string text = make_module();
  const auto megabytes = static_cast<double>(text.size()) / 1e6;
  const auto checked = demarc::ptx::parse(text, "bench");
  if (!checked.diagnostics.ok() || text.size() < wanted_bytes) {
    fmt::print("the module could not be made: {} bytes, {} errors\n", text.size(),
               checked.diagnostics.malformed);
    return 1;
  }
  std::size_t instructions = 0;
  for (const auto& function : checked.module.functions) {
    instructions += function.body.instructions.size();
  }
  fmt::print("module: {:.1f} MB, {} functions, {} instructions\n", megabytes,
             checked.module.functions.size(), instructions);

  std::vector<std::string> copies(repetitions, text);
  std::size_t next = 0;
  std::vector<demarc::ptx::ParseResult> kept;  // freed after the clock, as by a caller
  const double parsing =
      seconds_of([&] { kept.push_back(demarc::ptx::parse(std::move(copies[next++]), "bench")); });
  std::string printed;
  const double printing = seconds_of([&] { printed = print(checked.module); });
  std::string target(text.size(), '\0');
  const double copying = seconds_of([&] { std::memcpy(target.data(), text.data(), text.size()); });
  std::size_t lines = 0;
  const double scanning = seconds_of([&] {
    lines = 0;
    for (const char* at = text.data();
         (at = static_cast<const char*>(std::memchr(
              at, '\n', static_cast<std::size_t>(text.data() + text.size() - at)))) != nullptr;
         ++at) {
      ++lines;
    }
  });
  const std::size_t holding = peak_of_child(text, false);
  const std::size_t with_parse = peak_of_child(text, true);
  const double ratio =
      static_cast<double>(with_parse - std::min(with_parse, holding) + text.size()) /
      static_cast<double>(text.size());

  fmt::print("parse   {:8.1f} MB/s   target 150 MB/s\n", megabytes / parsing);
  fmt::print("print   {:8.1f} MB/s   ({:.1f} MB of text)\n", megabytes / printing,
             static_cast<double>(printed.size()) / 1e6);
  fmt::print("memory  {:8.1f} times the text at the peak   target at most 12\n", ratio);
  fmt::print("limit   {:8.1f} MB/s memcpy, {:.1f} MB/s memchr over {} lines\n", megabytes / copying,
             megabytes / scanning, lines);
  return megabytes / parsing >= 150 && ratio <= 12 ? 0 : 3;
}
