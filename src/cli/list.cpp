// demarc list: lists the names that options take.
#include <algorithm>
#include <memory>

#include "demarc/base/json.hpp"
#include "demarc/base/near_names.hpp"
#include "demarc/base/text.hpp"
#include "names.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct ListOptions {
  std::string kind;
  std::string json;
  std::string output;
};

std::string list_text(const std::vector<KnownName>& names) {
  std::size_t width = 0;
  for (const KnownName& one : names) width = std::max(width, one.name.size());
  std::string text;
  for (const KnownName& one : names) {
    text += fmt::format("{:<{}}  {}{}\n", one.name, width, one.meaning,
                        one.short_name.empty() ? "" : fmt::format(" (short: {})", one.short_name));
  }
  return text;
}

std::string list_json(std::string_view kind, const std::vector<KnownName>& names) {
  Json rows = Json::array();
  for (const KnownName& one : names) {
    Json row{{"name", one.name}, {"meaning", one.meaning}};
    if (!one.short_name.empty()) row["short"] = one.short_name;
    rows.push_back(std::move(row));
  }
  return json_text(Json{{"schema", "demarc.list/1"}, {"kind", kind}, {"names", std::move(rows)}},
                   2) +
         "\n";
}

Result<void> list_names(const ListOptions& options) {
  std::vector<std::string> kinds;
  for (const NameKind& one : name_kinds()) {
    if (one.kind != options.kind) {
      kinds.emplace_back(one.kind);
      continue;
    }
    const auto names = one.names();
    return emit_result(
        options.json, options.output, [&] { return list_json(one.kind, names); },
        [&] { return list_text(names); });
  }
  const std::string near = did_you_mean(options.kind, kinds);
  return invalid_input("there is no list of '{}'{} lists are {}", options.kind,
                       near.empty() ? "; the" : near + " The", joined(kinds, ", "));
}

std::string kinds_help() {
  std::vector<std::string_view> kinds;
  for (const NameKind& one : name_kinds()) kinds.push_back(one.kind);
  return "what to list: " + joined(kinds, ", ");
}

const RegisterVerb list_verb({
    .order = 300,
    .name = "list",
    .summary = "list the names that options take: workloads, devices, machines, modes, policies",
    .example = "demarc list workloads",
    .declare = [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<ListOptions>();
      app.add_option("kind", options->kind, kinds_help())->required()->option_text("KIND");
      add_json(app, options->json, "the names", {"demarc.list/1"});
      add_output(app, options->output);
      return [options] { return list_names(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
