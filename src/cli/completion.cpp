// demarc completion SHELL: prints a script that completes the words of a command line. The script
// asks demarc completion --words which words are possible.
#include <algorithm>
#include <memory>

#include "demarc/base/near_names.hpp"
#include "demarc/base/split.hpp"
#include "demarc/base/text.hpp"
#include "help.hpp"
#include "names.hpp"
#include "program.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct Shell {
  std::string_view name;
  std::string_view script;
};
constexpr Shell all_shells[] = {
    // Readline takes ':' and '=' for ends of words: what it gives and takes is behind the last.
    {"bash", R"sh(_demarc() {
  local IFS=$' \t\n' line="${COMP_LINE:0:COMP_POINT}" last words
  read -ra words <<<"$line"
  case "$line" in *[[:space:]]) words+=("") ;; esac
  last="${words[${#words[@]} - 1]}"
  IFS=$'\n'
  COMPREPLY=($(demarc completion --words "${words[@]:1}" 2>/dev/null))
  case "$last" in *[:=]*) COMPREPLY=("${COMPREPLY[@]#"${last%"${last##*[:=]}"}"}") ;; esac
}
complete -o bashdefault -o default -F _demarc demarc
)sh"},
    {"zsh", R"sh(#compdef demarc
_demarc() {
  local -a candidates
  candidates=("${(@f)$(demarc completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a candidates
  _files
}
if [ "$funcstack[1]" = _demarc ]; then _demarc "$@"; else compdef _demarc demarc; fi
)sh"},
    {"fish",
     R"sh(complete -c demarc -a '(demarc completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
)sh"},
};

// Options whose values are names, and what stands before the name there.
struct NamedValues {
  std::string_view option;
  std::string_view kind;
  std::string_view prefix;
};
constexpr NamedValues named_values[] = {
    {"--victims", "workloads", ""},
    {"--aggressors", "workloads", ""},
    {"--launch", "workloads", "bundled:"},
    {"--modes", "modes", ""},
    {"--mode", "modes", ""},
    {"--policy", "policies", ""},
    {"--policies", "policies", ""},
    {"--dispatch", "policies", ""},
    {"--device", "devices", "sim:"},
    {"--description", "devices", ""},
};

// Options that take one of a few words; without a verb the row is that of all other verbs.
struct FixedValues {
  std::string_view verb;
  std::string_view option;
  std::string_view words;
};
constexpr FixedValues fixed_values[] = {
    {"exec", "--part", "1/2 2/2 1/3 2/3 3/3 1/4 2/4 3/4 4/4"},
    {"exec", "--windows", "auto never always"},
    {"exec", "--sync-domain", "free none"},
    {"exec", "--device", "cuda:0"},
    {"serve", "--mps", "auto on off"},
    {"serve", "--survivors", "refuse wait end"},
    {"serve", "--device", "cuda:0"},
    {"verify", "--device", "cuda:0"},
    {"rewrite", "--color", ""},
    {"rewrite", "--colors", "1/2 2/2"},
    {"translate", "--arch", "centralised distributed bypass both all"},
    {"translate", "--app", "RL FIR MP PR MT KM FFT ST AES all"},
    {"translate", "--split", "roundrobin contiguous dim0 native"},
    {"translate", "--placement", "first-touch first-walk interleaved contiguous far"},
    {"translate", "--remote", "lines migration"},
    {"schedule", "--model", "simtbs simtbs-2020 corrected"},
    {"schedule", "--mix", "uniform extreme multi"},
    {"schedule", "--generation", "2021 2020 corrected"},
    {"", "--clock", "gpu events"},
    {"", "--split", "packed distributed gpc-aligned side-aware side-aligned"},
    {"", "--color", "auto always never"},
};

// nullptr: the option takes other values.
const FixedValues* fixed_values_of(std::string_view verb, std::string_view option) {
  for (const FixedValues& row : fixed_values) {
    if (row.option == option && (row.verb == verb || row.verb.empty())) return &row;
  }
  return nullptr;
}

std::vector<KnownName> names_of(std::string_view kind) {
  for (const NameKind& one : name_kinds()) {
    if (one.kind == kind) return one.names();
  }
  return {};
}

std::vector<std::string> values_of(std::string_view verb, std::string_view option) {
  std::vector<std::string> values;
  if (const FixedValues* fixed = fixed_values_of(verb, option)) {
    for (const std::string_view word : split_at(fixed->words, ' ')) {
      if (!word.empty()) values.emplace_back(word);
    }
    return values;
  }
  for (const NamedValues& row : named_values) {
    if (row.option != option) continue;
    const bool several = verb == "translate" && row.kind == "devices";
    for (const KnownName& one : names_of(several ? "machines" : row.kind)) {
      values.push_back(std::string(row.prefix) + one.name);
      if (!one.short_name.empty() && row.prefix.empty()) values.push_back(one.short_name);
    }
  }
  return values;
}

void add_words_of(const CLI::App& app, std::vector<std::string>& words) {
  for (const CLI::App* sub : app.get_subcommands({})) words.push_back(sub->get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (std::string& name : shown_names(*option)) words.push_back(std::move(name));
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
  }
}

// What can stand in the place of the last word.
std::vector<std::string> candidates(const std::vector<std::string>& line) {
  std::vector<std::string> words;
  if (line.size() < 2) {
    for (const Verb& verb : registered_verbs()) words.push_back(verb.name);
    return words;
  }
  const std::string& verb = line.front();
  if (verb == "help") return candidates({""});
  if (verb == "completion") {
    for (const Shell& shell : all_shells) words.emplace_back(shell.name);
    return words;
  }
  if (verb == "list") {
    for (const NameKind& one : name_kinds()) words.emplace_back(one.kind);
    return words;
  }
  const std::string& last = line.back();
  const auto equals = last.starts_with("--") ? last.find('=') : std::string::npos;
  if (equals != std::string::npos) {
    words = values_of(verb, last.substr(0, equals));
  } else if (line.size() > 2) {
    words = values_of(verb, line[line.size() - 2]);
  }
  // Behind an equals sign stands the value, and behind a comma the next one of a list.
  const auto comma = last.rfind(',');
  const std::size_t begin = comma != std::string::npos ? comma : equals;
  const std::string before = begin == std::string::npos ? "" : last.substr(0, begin + 1);
  for (std::string& word : words) word.insert(0, before);
  if (!words.empty()) return words;
  for (const Verb& one : registered_verbs()) {
    if (one.name != verb) continue;
    CLI::App app{one.summary, one.name};
    const auto action = one.declare(app);
    add_messages(app);
    const CLI::App* named = &app;
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      for (const CLI::App* sub : app.get_subcommands({})) {
        if (sub->get_name() == line[i]) named = sub;
      }
    }
    add_words_of(*named, words);
  }
  return words;
}

struct CompletionOptions {
  std::string shell;
  bool words = false;
  std::vector<std::string> line;
};

Result<void> complete(const CompletionOptions& options) {
  if (options.words) {
    std::string text;
    for (const std::string& word : candidates(options.line)) {
      if (options.line.empty() || word.starts_with(options.line.back())) text += word + "\n";
    }
    return emit("", text);
  }
  std::vector<std::string> known;
  for (const Shell& shell : all_shells) {
    if (shell.name == options.shell) return emit("", shell.script);
    known.emplace_back(shell.name);
  }
  return invalid_input("there is no completion for '{}'; there is for {}{}", options.shell,
                       joined(known, ", "), did_you_mean(options.shell, known));
}

const RegisterVerb completion_verb({
    .order = 302,
    .name = "completion",
    .summary = "print a script that lets bash, zsh or fish complete command lines of demarc",
    .example = "source <(demarc completion bash)",
    .declare = [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<CompletionOptions>();
      app.add_option("shell", options->shell, "bash, zsh or fish")->option_text("SHELL");
      return [options] { return complete(*options); };
    },
});

}  // namespace

// The words behind --words are those of another command line: no option is read there.
bool answers_completion(int argc, char** argv) {
  if (argc < 3 || std::string_view(argv[1]) != "completion" ||
      std::string_view(argv[2]) != "--words") {
    return false;
  }
  CompletionOptions options;
  options.words = true;
  options.line.assign(argv + 3, argv + argc);
  return complete(options).has_value();
}

}  // namespace demarc::cli
