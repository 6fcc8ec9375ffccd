// Collects the runs behind each number of an interference study, and the command that repeats them.
#include "isolate_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "demarc/base/text.hpp"
#include "isolate_tables.hpp"

namespace demarc::report {
namespace {

using study::StudyResult;

// The words of a command line, with their quotes: a blank between quotes ends no word.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '\'') quoted = !quoted;
    if (c == ' ' && !quoted) {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Options that say which cells a study has and where its results go.
constexpr std::array<std::string_view, 10> replaced{
    "--modes", "--victims", "--victim-cmd", "--aggressors", "--aggressor-cmd",
    "--json",  "--resume",  "--html",       "--csv",        "--baseline"};

bool is_replaced(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  return std::find(replaced.begin(), replaced.end(), name) != replaced.end();
}

// The options of a study that stay when one of its cells is run alone.
std::vector<std::string> kept_words(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_replaced(words[i])) {
      kept.push_back(words[i]);
      continue;
    }
    // An option without "=" has its value in the next word. --json may stand without a value.
    const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with("-");
    if (words[i].find('=') == std::string::npos && words[i] != "--json" && has_value) ++i;
  }
  return kept;
}

}  // namespace

std::string runs_key(const StudyResult& result, std::size_t mode, std::size_t victim,
                     std::optional<std::size_t> aggressor) {
  const study::Plan& plan = result.plan;
  return fmt::format("{}|{}|{}", plan.modes[mode].name(), plan.victims[victim].name,
                     aggressor ? plan.aggressors[*aggressor].name : "idle");
}

std::string command_of_cell(const std::string& command, const StudyResult& result,
                            const study::Cell& cell) {
  const study::Plan& plan = result.plan;
  std::vector<std::string> words = words_of(command);
  // The line of a study of commands is repeated whole, because it quotes them as the shell needs
  // it.
  const bool by_command = study::is_command(plan.victims[cell.victim]) ||
                          (cell.aggressor && study::is_command(plan.aggressors[*cell.aggressor]));
  if (by_command || words.size() < 2 || words[1] != "isolate") return command;
  words = kept_words(words);
  const std::size_t aggressor = cell.aggressor.value_or(0);
  words.push_back("--modes " + plan.modes[cell.mode].name());
  words.push_back("--victims " + plan.victims[cell.victim].spec);
  if (!study::is_command(plan.aggressors[aggressor])) {
    words.push_back("--aggressors " + plan.aggressors[aggressor].spec);
  }
  return joined(words, " ");
}

void add_runs(Page& page, const StudyResult& result, const std::string& command) {
  const study::Cell* idle = nullptr;
  for (const study::Cell& cell : result.cells) {  // idle stands before its victim's aggressors
    if (!cell.aggressor) idle = &cell;
    if (!study::counts(cell) || cell.samples_ns.empty()) continue;
    Runs runs{.key = runs_key(result, cell.mode, cell.victim, cell.aggressor),
              .command = command_of_cell(command, result, cell)};
    runs.times.title = fmt::format("{} under {}", result.plan.victims[cell.victim].name,
                                   result.plan.modes[cell.mode].name());
    const bool timed_by_host = study::is_command(result.plan.victims[cell.victim]);
    runs.times.value = {.name = timed_by_host ? "time" : "kernel time", .unit = "us"};
    std::vector<const study::Cell*> shown{&cell};
    const bool of_same_victim =
        idle != nullptr && idle->mode == cell.mode && idle->victim == cell.victim;
    if (cell.aggressor && of_same_victim && study::counts(*idle)) shown.insert(shown.begin(), idle);
    for (const study::Cell* one : shown) {
      Sample sample{.name = one->aggressor ? "next to " + neighbour_name(result, *one)
                                           : "next to idle neighbours"};
      for (const double ns : one->samples_ns) sample.values.push_back(ns / 1e3);
      runs.times.samples.push_back(std::move(sample));
    }
    page.runs(runs);
  }
}

}  // namespace demarc::report
