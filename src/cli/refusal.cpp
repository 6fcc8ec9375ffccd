// Says what is wrong with a command line: unknown options first, because other errors follow from
// them.
#include "refusal.hpp"

#include <fmt/format.h>

#include "demarc/base/near_names.hpp"
#include "demarc/base/text.hpp"
#include "help.hpp"
#include "program.hpp"

namespace demarc::cli {
namespace {

// Options that a verb had once, and what took their place.
struct GoneOption {
  std::string_view verb;
  std::string_view name;
  std::string_view instead;
};
constexpr GoneOption gone_options[] = {
    {"exec", "--share",
     "give --part K/N for a part of the whole card (SMs, L2 and memory), or --sms 50% for SMs "
     "alone"},
    {"verify", "--share", "give --sms 50%, a percentage of the card's SMs"},
    {"capture", "--most", "give --max-bytes, which means the same"},
    {"sweep", "--most", "give --max-points, which means the same"},
    {"attack", "--limit", "give --max-slowdown 1.05, a factor, for what was --limit 5%"},
    {"attack", "--limit-p99",
     "give --max-p99-slowdown 1.08, a factor, for what was --limit-p99 8%"},
};

// The part of the program that the line names, "demarc probe memory".
struct Named {
  const CLI::App* app = nullptr;
  const CLI::App* verb = nullptr;  // nullptr: the program alone
  std::string name = "demarc";
};

// A group of options is a part too, without a name.
const CLI::App* parsed_part(const CLI::App& app) {
  for (const CLI::App* part : app.get_subcommands()) {
    if (!part->get_name().empty()) return part;
  }
  return nullptr;
}

Named named_part(const CLI::App& app) {
  Named named{.app = &app};
  while (const CLI::App* part = parsed_part(*named.app)) {
    if (named.verb == nullptr) named.verb = part;
    named.app = part;
    named.name += " " + part->get_name();
  }
  return named;
}

void add_option_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (std::string& name : shown_names(*option)) names.push_back(std::move(name));
  }
}

// Options of the verb and of its part are looked at.
std::string near_option(const Named& named, std::string_view word) {
  std::vector<std::string> names;
  add_option_names(*named.app, names);
  if (named.verb != nullptr && named.verb != named.app) add_option_names(*named.verb, names);
  return did_you_mean(word, names);
}

std::string unknown_option(const Named& named, const std::string& word) {
  for (const GoneOption& gone : gone_options) {
    if (named.verb == nullptr || named.verb->get_name() != gone.verb || word != gone.name) continue;
    return fmt::format("{} is gone; {}", word, gone.instead);
  }
  return fmt::format("unknown option {}{}", word, near_option(named, word));
}

std::vector<std::string> part_names(const CLI::App& app) {
  std::vector<std::string> parts;
  for (const CLI::App* part : app.get_subcommands({})) {
    if (!part->get_name().empty()) parts.push_back(part->get_name());
  }
  return parts;
}

// A word that no option takes. The file of --json stands behind an equals sign.
std::string unexpected_word(const Named& named, const std::string& word) {
  const auto parts = part_names(*named.app);
  if (!parts.empty()) {
    return fmt::format("there is no {} {}{}", named.name, word, did_you_mean(word, parts));
  }
  const CLI::Option* json = named.app->get_option_no_throw("--json");
  if (json == nullptr && named.verb != nullptr) json = named.verb->get_option_no_throw("--json");
  const bool for_json = json != nullptr && json->count() > 0 && json->results().front() == "-";
  return fmt::format("unexpected argument '{}'{}", word,
                     for_json ? "; to name a file for the JSON write --json=" + word : "");
}

// "--device: 1 required TEXT missing" says that a value is missing.
std::string mismatch(std::string text) {
  const auto colon = text.find(':');
  if (!text.ends_with(" missing") || colon == std::string::npos) return text;
  return text.substr(0, colon) + ": a value is missing";
}

template <class Kind>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

// What is wrong with the line as a whole; empty: `error` is about a value.
std::string fault_of_line(const Named& named, const CLI::App& app, const CLI::ParseError& error) {
  const auto extras = app.remaining(true);
  for (const std::string& extra : extras) {
    if (!extra.starts_with("-") || extra == "-" || extra == "--") continue;
    return unknown_option(named, extra.substr(0, extra.find('=')));
  }
  const bool required = is<CLI::RequiredError>(error);
  const bool part_missing =
      required && std::string_view(error.what()).find("ubcommand") != std::string_view::npos;
  if (!extras.empty() && (part_missing || is<CLI::ExtrasError>(error))) {
    return unexpected_word(named, extras.front());
  }
  if (part_missing) {
    return "a subcommand is required: " + joined(part_names(*named.app), ", ");
  }
  if (is<CLI::ArgumentMismatch>(error)) return mismatch(error.what());
  const bool of_line = required || is<CLI::RequiresError>(error) || is<CLI::ExcludesError>(error);
  return of_line ? error.what() : "";
}

}  // namespace

std::string refusal_of(const CLI::App& app, const CLI::ParseError& error) {
  const Named named = named_part(app);
  const std::string begin = named.verb == nullptr ? "demarc" : "demarc " + named.verb->get_name();
  const std::string fault = fault_of_line(named, app, error);
  if (!fault.empty()) {
    return fmt::format("{}: {}\n{}; {} --help shows the options\n", begin, fault,
                       usage_of(*named.app, named.name), named.name);
  }
  // That it is a number was found out before.
  const bool of_range = is<CLI::ConversionError>(error);
  return fmt::format("{}: {}{}\n", begin, error.what(),
                     of_range ? ": this value is out of the option's range" : "");
}

std::string unknown_verb_text(std::string_view verb) {
  std::vector<std::string> known;
  for (const Verb& one : registered_verbs()) known.push_back(one.name);
  return fmt::format("there is no verb '{}'{}", verb, did_you_mean(verb, known, "demarc --help"));
}

}  // namespace demarc::cli
