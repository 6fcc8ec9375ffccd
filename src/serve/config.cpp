// Reads the configuration: every value by its key. Unknown keys are refused.
#include "demarc/serve/config.hpp"

#include <grp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/split.hpp"
#include "demarc/base/text.hpp"

namespace demarc::serve {
namespace {

using partition::Part;

// A context takes some 0.5 GiB, and each program needs one beside that of its proof.
constexpr std::uint64_t default_reserve = std::uint64_t{6} << 30U;
constexpr std::uint32_t max_sms = 1024;  // more than any card has

// "colors" of "colours".
std::string usual_spelling(std::string_view key) {
  std::string usual(key);
  if (const auto at = usual.find("colour"); at != std::string::npos) usual.erase(at + 4, 1);
  return usual;
}

// A table whose keys are taken one by one, in either spelling of colour; finish() refuses those
// that were not taken.
class Table {
 public:
  Table(const toml::table& table, std::string source)
      : table_(&table), source_(std::move(source)) {}

  [[nodiscard]] FilePlace place_of(const toml::node& node) const {
    const toml::source_position at = node.source().begin;
    return fmt::format("{}:{}:{}", source_, at.line, at.column);
  }
  // The place of the key, or that of its table where there is no such key.
  [[nodiscard]] FilePlace place(std::string_view key) const {
    const toml::node* node = find(key);
    return place_of(node == nullptr ? static_cast<const toml::node&>(*table_) : *node);
  }
  [[nodiscard]] bool has(std::string_view key) const { return table_->contains(key); }
  [[nodiscard]] const toml::node* find(std::string_view key) const {
    for (const auto& [there, value] : *table_) {
      if (usual_spelling(there.str()) == key) return &value;
    }
    return nullptr;
  }
  const toml::node* take(std::string_view key) {
    known_.emplace_back(key);
    return find(key);
  }

  [[nodiscard]] Result<std::optional<std::string>> string(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::optional<std::string>();
    if (const auto* text = node->as_string()) return std::optional(text->get());
    return invalid_input("{}: {}: text in quotes was expected", place(key), key);
  }
  [[nodiscard]] Result<std::optional<std::uint64_t>> number(std::string_view key, std::uint64_t low,
                                                            std::uint64_t high) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::optional<std::uint64_t>();
    const auto* number = node->as_integer();
    if (number == nullptr || number->get() < 0 || static_cast<std::uint64_t>(number->get()) < low ||
        static_cast<std::uint64_t>(number->get()) > high) {
      return invalid_input("{}: {}: a whole number from {} to {} was expected", place(key), key,
                           low, high);
    }
    return std::optional(static_cast<std::uint64_t>(number->get()));
  }
  [[nodiscard]] Result<std::optional<std::uint64_t>> bytes(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::optional<std::uint64_t>();
    std::string text;
    if (const auto* words = node->as_string()) text = words->get();
    if (const auto* plain = node->as_integer()) text = std::to_string(plain->get());
    DEMARC_TRY(const std::uint64_t value,
               parse_bytes(text, fmt::format("{}: {}", place(key), key)));
    return std::optional(value);
  }

  [[nodiscard]] Result<bool> boolean(std::string_view key, bool fallback) {
    const toml::node* node = take(key);
    if (node == nullptr) return fallback;
    if (const auto* value = node->as_boolean()) return value->get();
    return invalid_input("{}: {}: true or false was expected", place(key), key);
  }
  // Above 0.
  [[nodiscard]] Result<std::optional<double>> positive(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::optional<double>();
    const auto value = node->value<double>();
    if (node->is_number() && value && std::isfinite(*value) && *value > 0) return value;
    return invalid_input("{}: {}: a number above 0 was expected", place(key), key);
  }

  [[nodiscard]] Result<void> finish() const {
    for (const auto& [key, value] : *table_) {
      const std::string usual = usual_spelling(key.str());
      const toml::source_position at = key.source().begin;
      if (usual != key.str() && table_->contains(usual)) {
        return invalid_input("{}:{}:{}: {}: {} says the same: leave one out", source_, at.line,
                             at.column, key.str(), usual);
      }
      if (std::find(known_.begin(), known_.end(), usual) != known_.end()) continue;
      return invalid_input("{}:{}:{}: unknown key '{}'; the keys here are: {}", source_, at.line,
                           at.column, key.str(), joined(known_, ", "));
    }
    return {};
  }

 private:
  const toml::table* table_;
  std::string source_;
  std::vector<std::string> known_;
};

tl::unexpected<Error> not_colors(const FilePlace& place) {
  return invalid_input(
      "{}: colors: a part such as \"1/2\", the first half, or a list of colours such as [0, 1] "
      "was expected",
      place);
}

Result<Part> read_part(const std::string& text, std::string_view key, const FilePlace& place) {
  auto part = partition::parse_part(text);
  if (part) return part;
  return invalid_input("{}: {}: {}", place, key, part.error().message);
}

// The parts that tenants are written in, for how many colours there have to be.
Result<std::uint32_t> parts_of(const toml::table& tenants, const std::string& source) {
  std::uint32_t parts = 1;
  for (const auto& [name, node] : tenants) {
    if (!node.is_table()) continue;
    const Table table(*node.as_table(), source);
    const toml::node* colors = table.find("colors");
    if (colors == nullptr || !colors->is_string()) continue;
    DEMARC_TRY(const Part part,
               read_part(colors->as_string()->get(), "colors", table.place("colors")));
    parts = std::lcm(parts, part.of);
    if (parts > partition::max_parts) {
      return invalid_input(
          "{}: colors: the parts of all tenants need {} colours; at most {} are possible",
          table.place("colors"), parts, partition::max_parts);
    }
  }
  return std::max(parts, 2U);
}

Result<color::ColorSet> read_colors(const toml::node_view<const toml::node> node,
                                    std::uint32_t count, const FilePlace& place) {
  color::ColorSet colors(0, count);
  if (const auto* text = node.as_string()) {
    DEMARC_TRY(const Part part, read_part(text->get(), "colors", place));
    if (count % part.of != 0) {
      return invalid_input("{}: colors: {} colours cannot be divided into {} parts", place, count,
                           part.of);
    }
    return color::ColorSet::run(part.first(count), count / part.of, count);
  }
  const auto* list = node.as_array();
  if (list == nullptr || list->empty()) return not_colors(place);
  for (const toml::node& item : *list) {
    const auto* number = item.as_integer();
    if (number == nullptr || number->get() < 0 || number->get() >= std::int64_t{count}) {
      return invalid_input("{}: colors: numbers from 0 to {} were expected", place, count - 1);
    }
    colors.insert(static_cast<std::uint32_t>(number->get()));
  }
  return colors;
}

// A number of SMs, or a percentage of them in quotes.
Result<void> read_sms(Table& table, TenantConfig& tenant) {
  const toml::node* node = table.take("sms");
  if (node == nullptr) return {};
  const std::string what = fmt::format("{}: sms", tenant.choice_place);
  std::string text;
  if (const auto* words = node->as_string()) text = words->get();
  if (const auto* number = node->as_integer()) text = std::to_string(number->get());
  DEMARC_CHECK(partition::read_sms(text, what, tenant.choice));
  if (tenant.choice.sms <= max_sms) return {};
  return invalid_input("{}: {} SMs were asked for; at most {} are possible", what,
                       tenant.choice.sms, max_sms);
}

// Which TPCs: exactly one of three keys, and how they are dealt out if it says which part.
Result<void> read_choice(Table& table, TenantConfig& tenant) {
  constexpr std::array keys{"tpcs", "gpcs", "sms"};
  tenant.choice_place = tenant.place;
  if (table.has("share")) {
    return invalid_input("{}: share: this key is gone; write sms = \"50%\" for half of the SMs",
                         table.place("share"));
  }
  int given = 0;
  for (const char* key : keys) {
    if (!table.has(key)) continue;
    ++given;
    tenant.choice_place = table.place(key);
  }
  if (given != 1) {
    return invalid_input("{}: tenant '{}': exactly one of {} was expected", tenant.choice_place,
                         tenant.name, joined(keys, ", "));
  }
  DEMARC_TRY(const auto tpcs, table.string("tpcs"));
  DEMARC_TRY(const auto gpcs, table.string("gpcs"));
  DEMARC_CHECK(read_sms(table, tenant));
  DEMARC_TRY(const auto split, table.string("split"));
  tenant.split_place = split ? table.place("split") : tenant.choice_place;
  if (split) {
    const auto strategy = partition::parse_split_strategy(*split);
    if (!strategy) {
      return invalid_input("{}: split: {}", tenant.split_place, strategy.error().message);
    }
    tenant.split = *strategy;
  }
  if (tpcs && tpcs->find('/') != std::string::npos) {
    DEMARC_TRY(tenant.tpc_part, read_part(*tpcs, "tpcs", tenant.choice_place));
    return {};
  }
  if (split) {
    return invalid_input(
        "{}: split: only parts are dealt out: write tpcs = \"1/2\" for the first half, or leave "
        "split out",
        tenant.split_place);
  }
  tenant.choice.tpcs = tpcs.value_or("");
  tenant.choice.gpcs = gpcs.value_or("");
  if (!tenant.choice.empty()) return {};
  return invalid_input("{}: a list such as \"0-15,20\" was expected", tenant.choice_place);
}

Result<void> read_canary(Table& table, bool fallback, TenantConfig& tenant) {
  DEMARC_TRY(tenant.canary, table.boolean("canary", fallback));
  DEMARC_TRY(tenant.canary_baseline_cycles, table.positive("canary_baseline"));
  if (tenant.canary || !tenant.canary_baseline_cycles) return {};
  return invalid_input("{}: canary_baseline: tenant '{}' has no canary: write canary = true, too",
                       table.place("canary_baseline"), tenant.name);
}

Result<TenantConfig> read_tenant(const std::string& name, const toml::table& node,
                                 const Config& config, bool canaries) {
  Table table(node, config.source);
  TenantConfig tenant;
  tenant.name = name;
  tenant.place = table.place_of(node);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; };
  if (name.empty() || std::any_of(name.begin(), name.end(), is_control)) {
    return invalid_input("{}: a tenant's name has at least one character and no control characters",
                         tenant.place);
  }
  DEMARC_CHECK(read_choice(table, tenant));
  tenant.colors_place = table.place("colors");
  const toml::node_view colors(table.take("colors"));
  if (!colors) {
    return invalid_input("{}: tenant '{}' has no colors: its memory would belong to all tenants",
                         tenant.place, name);
  }
  DEMARC_TRY(tenant.colors, read_colors(colors, config.colors, tenant.colors_place));
  tenant.bytes_place = table.place("bytes");
  DEMARC_TRY(tenant.bytes, table.bytes("bytes"));
  tenant.windows_place = table.place("windows");
  DEMARC_TRY(tenant.windows, table.bytes("windows"));
  tenant.domain_place = table.place("sync_domain");
  if (const toml::node* domain = table.take("sync_domain"); domain != nullptr) {
    const auto* number = domain->as_integer();
    const auto* word = domain->as_string();
    const bool free = word != nullptr && word->get() == "free";
    tenant.no_domain = word != nullptr && word->get() == "none";
    if (!free && !tenant.no_domain &&
        (number == nullptr || number->get() < 1 || number->get() > INT32_MAX)) {
      return invalid_input(
          "{}: sync_domain: \"free\", \"none\" or the number of a domain from 1 on was expected; "
          "domain 0 is that of all programs without one",
          tenant.domain_place);
    }
    if (number != nullptr) tenant.sync_domain = static_cast<std::uint32_t>(number->get());
  }
  DEMARC_CHECK(read_canary(table, canaries, tenant));
  DEMARC_CHECK(table.finish());
  return tenant;
}

Result<std::optional<gid_t>> read_group(Table& table) {
  DEMARC_TRY(const auto name, table.string("group"));
  if (!name) return std::optional<gid_t>();
  if (const struct ::group* found = ::getgrnam(name->c_str())) return std::optional(found->gr_gid);
  return invalid_input("{}: group: this machine has no group '{}'", table.place("group"), *name);
}

Result<Config> read_all(const toml::table& root, const std::string& source) {
  Table table(root, source);
  Config config;
  config.source = source;
  const toml::node* tenants = table.take("tenants");
  if (tenants == nullptr || !tenants->is_table() || tenants->as_table()->empty()) {
    return invalid_input("{}: tenants: at least one table such as [tenants.detector] was expected",
                         tenants == nullptr ? source : table.place("tenants"));
  }
  DEMARC_TRY(const std::uint32_t parts, parts_of(*tenants->as_table(), source));
  DEMARC_TRY(const auto colors, table.number("colors", 2, partition::max_parts));
  config.colors = static_cast<std::uint32_t>(colors.value_or(parts));
  DEMARC_TRY(const auto card, table.number("card", 0, 1023));
  config.card = static_cast<std::uint32_t>(card.value_or(0));
  DEMARC_TRY(const auto description, table.string("description"));
  config.description = description.value_or("");
  if (table.has("memory") && table.has("reserve")) {
    return invalid_input(
        "{}: reserve: memory already says how much the server takes: leave one out",
        table.place("reserve"));
  }
  DEMARC_TRY(config.memory, table.bytes("memory"));
  DEMARC_TRY(const auto reserve, table.bytes("reserve"));
  config.reserve = reserve.value_or(default_reserve);
  DEMARC_TRY(const auto socket, table.string("socket"));
  config.socket = socket.value_or("");
  DEMARC_TRY(config.group, read_group(table));
  DEMARC_TRY(const auto metrics, table.number("metrics", 1, UINT16_MAX));
  if (metrics) config.metrics = static_cast<std::uint16_t>(*metrics);
  DEMARC_TRY(const auto mps, table.string("mps"));
  const auto use = parse_mps_use(mps.value_or("auto"));
  if (!use) return invalid_input("{}: mps: {}", table.place("mps"), use.error().message);
  config.mps = *use;
  DEMARC_TRY(const bool canaries, table.boolean("canary", false));
  DEMARC_CHECK(table.finish());
  for (const auto& [name, node] : *tenants->as_table()) {
    const std::string text(name.str());
    if (!node.is_table()) {
      return invalid_input("{}: tenants.{}: a table was expected", table.place_of(node), text);
    }
    DEMARC_TRY(TenantConfig tenant, read_tenant(text, *node.as_table(), config, canaries));
    config.tenants.push_back(std::move(tenant));
  }
  return config;
}

}  // namespace

Result<MpsUse> parse_mps_use(std::string_view text) {
  if (text == "on") return MpsUse::on;
  if (text == "off") return MpsUse::off;
  if (text == "auto") return MpsUse::automatic;
  return invalid_input("'{}': on, off or auto was expected", text);
}

std::string mps_folder(const std::string& socket) {
  return socket + ".mps";
}

namespace {

// toml++ takes for granted that a table's header has a key, and follows dotted keys by recursion.
Result<void> check_headers(std::string_view text, const std::string& source) {
  constexpr std::ptrdiff_t max_dots = 1000;
  std::uint32_t number = 0;
  for (const std::string_view line : split_at(text, '\n')) {
    ++number;
    if (std::count(line.begin(), line.end(), '.') > max_dots) {
      return invalid_input("{}:{}: a line has at most {} dots", source, number, max_dots);
    }
    const std::size_t mark = line.find_first_not_of(" \t");
    if (mark == std::string_view::npos || line[mark] != '[') continue;
    const std::size_t key = line.find_first_not_of("[ \t", mark);
    if (key == std::string_view::npos ||
        std::string_view("].\r").find(line[key]) != std::string_view::npos) {
      return invalid_input("{}:{}: a table's name was expected, such as [tenants.detector]", source,
                           number);
    }
  }
  return {};
}

}  // namespace

Result<Config> parse_config(std::string_view text, const std::string& source) {
  DEMARC_CHECK(check_headers(text, source));
  const toml::parse_result parsed = toml::parse(text, source);
  if (parsed) return read_all(parsed.table(), source);
  const toml::source_position at = parsed.error().source().begin;
  return invalid_input("{}:{}:{}: {}", source, at.line, at.column, parsed.error().description());
}

Result<Config> read_config(const std::string& path) {
  DEMARC_TRY(const std::string text, read_file(path));
  return parse_config(text, path);
}

}  // namespace demarc::serve
