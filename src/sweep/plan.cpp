// Represents a sweep file as a whole, and gives its points by number.
#include "demarc/sweep/plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "plan_axes.hpp"

namespace demarc::sweep {
namespace {

constexpr std::uint64_t max_points = 1'000'000'000;

// Verbs that calculate: what they give depends on their arguments and on the files these name.
constexpr std::array<std::string_view, 9> verbs = {
    "isolate", "schedule", "translate", "probe", "emulate", "locality", "blocks", "topo", "ptx"};

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || c == '_' || (c >= '0' && c <= '9');
  });
}

Result<std::vector<std::string>> strings_of(const Json& array, const std::string& where) {
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (!array[i].is_string()) return invalid_input("{}[{}]: expected a string", where, i);
    strings.push_back(array[i].get<std::string>());
  }
  return strings;
}

bool is_statistic(const std::string& name) {
  if (name == "mean" || name == "interval" || name == "min" || name == "max") return true;
  return name.size() >= 2 && name.size() <= 3 && name[0] == 'p' && name[1] >= '1' &&
         name[1] <= '9' && (name.size() == 2 || (name[2] >= '0' && name[2] <= '9'));
}

Json to_json(const Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

// As a sweep file has them: ranges, and lists of what files and zips came to.
Json to_json(const std::vector<Axis>& axes) {
  Json json = Json::object();
  for (const Axis& axis : axes) {
    if (axis.is_range()) {
      json[axis.names()[0]] = {
          {"from", axis.from()},
          {"to", axis.from() + static_cast<double>(axis.size() - 1) * axis.step()},
          {"step", axis.step()}};
      continue;
    }
    Json lists = Json::object();
    for (std::size_t n = 0; n < axis.names().size(); ++n) {
      Json list = Json::array();
      for (std::size_t i = 0; i < axis.size(); ++i) list.push_back(to_json(axis.value(i, n)));
      lists[axis.names()[n]] = std::move(list);
    }
    if (axis.names().size() == 1) {
      json.update(lists);
    } else {
      json[joined(axis.names(), "+")] = {{"zip", std::move(lists)}};
    }
  }
  return json;
}

// The names in braces of an argument, each with where it stands.
struct Placed {
  std::size_t begin, end;  // of {name}
  std::string_view name;
};
std::vector<Placed> placed_in(std::string_view argument) {
  std::vector<Placed> names;
  for (std::size_t at = argument.find('{'); at != std::string_view::npos;
       at = argument.find('{', at + 1)) {
    const std::size_t end = argument.find('}', at);
    if (end == std::string_view::npos) break;
    const std::string_view name = argument.substr(at + 1, end - at - 1);
    if (is_name(name)) names.push_back({at, end + 1, name});
  }
  return names;
}

// For a file's content, which is read once while its time and size stay.
Result<std::uint64_t> digest_of(const std::string& path) {
  struct Known {
    std::filesystem::file_time_type time;
    std::uintmax_t size = 0;
    std::uint64_t digest = 0;
  };
  static thread_local std::map<std::string, Known> files;
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  const auto size = std::filesystem::file_size(path, error);
  Known& known = files[path];
  if (known.digest == 0 || known.time != time || known.size != size) {
    DEMARC_TRY(const std::string content, read_file(path));
    known = {time, size, hash_of(content)};
  }
  return known.digest;
}

// For the files among the arguments; empty: none is one.
Result<std::string> input_of(const std::vector<std::string>& arguments) {
  std::string digests;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(argument, error)) continue;
    DEMARC_TRY(const std::uint64_t digest, digest_of(argument));
    append(digests, "{:016x}", digest);
  }
  if (digests.size() <= 16) return digests;
  return fmt::format("{:016x}", hash_of(digests));
}

}  // namespace

Value Axis::value(std::size_t position, std::size_t name) const {
  if (is_range()) return shortest(from_ + static_cast<double>(position) * step_);
  return values_[position][name];
}

std::string to_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  return fmt::format("{}", std::get<double>(value));
}

Result<Plan> Plan::parse(std::string_view text, const std::string& source,
                         const std::filesystem::path& folder) {
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject root, JsonObject::of(json, source));
  DEMARC_TRY(const std::string schema, root.string("schema"));
  if (schema != "demarc.sweep/1") {
    return invalid_input("{}: schema '{}': this program reads demarc.sweep/1", source, schema);
  }
  Plan plan;
  plan.source_ = source;
  DEMARC_TRY(const Json* command, root.array("command"));
  DEMARC_TRY(plan.command_, strings_of(*command, source + ": command"));
  if (plan.command_.empty() ||
      std::find(verbs.begin(), verbs.end(), plan.command_.front()) == verbs.end()) {
    return invalid_input("{}: command: a sweep needs a verb that calculates: {}", source,
                         joined(std::vector<std::string>(verbs.begin(), verbs.end()), ", "));
  }
  DEMARC_TRY(const Json* axes, root.any("axes"));
  DEMARC_TRY(plan.axes_, read_axes(*axes, source + ": axes", folder));
  DEMARC_TRY(const Json* keep, root.any("keep"));
  if (!keep->is_object() || keep->empty()) {
    return invalid_input("{}: keep: expected a name and a JSON pointer for each kept number",
                         source);
  }
  std::set<std::string> names;
  const auto take_name = [&](const std::string& where, const std::string& name) -> Result<void> {
    if (!is_name(name)) {
      return invalid_input("{}: {}.{}: a name has letters, digits and _, and begins with a letter",
                           source, where, name);
    }
    if (!names.insert(name).second) {
      return invalid_input(
          "{}: {}.{}: the name is taken; all axes and kept numbers need different names", source,
          where, name);
    }
    return {};
  };
  for (const std::string& name : plan.axis_names()) DEMARC_CHECK(take_name("axes", name));
  for (const auto& [name, pointer] : keep->items()) {
    DEMARC_CHECK(take_name("keep", name));
    if (!pointer.is_string() || !pointer.get<std::string>().starts_with('/')) {
      return invalid_input("{}: keep.{}: expected a JSON pointer, as \"/cells/0/antt\"", source,
                           name);
    }
    plan.measures_.push_back({name, pointer.get<std::string>()});
  }
  if (root.has("aggregate")) {
    DEMARC_TRY(JsonObject object, root.object("aggregate"));
    Aggregate& aggregate = plan.aggregate_;
    DEMARC_TRY(const Json* over, object.array("over"));
    DEMARC_TRY(aggregate.over, strings_of(*over, object.where() + ".over"));
    DEMARC_TRY(const Json* statistics, object.array("statistics"));
    DEMARC_TRY(aggregate.statistics, strings_of(*statistics, object.where() + ".statistics"));
    for (const std::string& statistic : aggregate.statistics) {
      if (is_statistic(statistic)) continue;
      return invalid_input(
          "{}: aggregate.statistics: '{}' is not a statistic; use mean, interval, min, max, p1 to "
          "p99",
          source, statistic);
    }
    if (object.has("best")) {
      DEMARC_TRY(JsonObject best, object.object("best"));
      aggregate.best.emplace();
      DEMARC_TRY(aggregate.best->axis, best.string("axis"));
      DEMARC_TRY(aggregate.best->measure, best.string("measure"));
      DEMARC_TRY(aggregate.best->least, best.boolean_or("least", true));
      DEMARC_CHECK(best.finish());
    }
    DEMARC_CHECK(object.finish());
    std::vector<std::string> asked = aggregate.over;
    if (aggregate.best) asked.push_back(aggregate.best->axis);
    const auto axes_there = plan.axis_names();
    for (const std::string& name : asked) {
      if (std::find(axes_there.begin(), axes_there.end(), name) != axes_there.end()) continue;
      return invalid_input("{}: aggregate: there is no axis '{}'; axes are {}", source, name,
                           joined(axes_there, ", "));
    }
    if (aggregate.best &&
        std::none_of(plan.measures_.begin(), plan.measures_.end(),
                     [&](const Measure& m) { return m.name == aggregate.best->measure; })) {
      return invalid_input("{}: aggregate.best.measure: '{}' is not kept", source,
                           aggregate.best->measure);
    }
  }
  DEMARC_TRY(plan.time_limit_s_, root.number_or("time_limit_s", 0));
  if (!(plan.time_limit_s_ >= 0))
    return invalid_input("{}: time_limit_s: it must be 0 or more", source);
  DEMARC_CHECK(root.finish());
  std::set<std::string_view> used;
  const auto axis_names = plan.axis_names();
  const auto use = [&](const std::string& where, std::string_view pattern) -> Result<void> {
    for (const Placed& placed : placed_in(pattern)) {
      if (std::find(axis_names.begin(), axis_names.end(), placed.name) == axis_names.end()) {
        return invalid_input("{}: {}: there is no axis '{}'; axes are {}", source, where,
                             placed.name, joined(axis_names, ", "));
      }
      used.insert(placed.name);
    }
    return {};
  };
  for (const std::string& argument : plan.command_) DEMARC_CHECK(use("command", argument));
  for (const Measure& measure : plan.measures_) {
    DEMARC_CHECK(use("keep." + measure.name, measure.pointer));
  }
  for (const std::string& name : plan.axis_names()) {
    if (used.contains(name)) continue;
    return invalid_input(
        "{}: axes.{}: neither the command nor keep uses it; write {{{}}} where its value belongs",
        source, name, name);
  }
  Json resolved = json;
  resolved["axes"] = to_json(plan.axes_);
  plan.text_ = json_text(resolved, 2) + "\n";
  for (const Axis& axis : plan.axes_) {
    plan.size_ *= axis.size();
    if (plan.size_ <= max_points) continue;
    return invalid_input("{}: axes: the sweep has more than {} points, the limit", source,
                         max_points);
  }
  return plan;
}

std::vector<std::string> Plan::axis_names() const {
  std::vector<std::string> names;
  for (const Axis& axis : axes_) {
    names.insert(names.end(), axis.names().begin(), axis.names().end());
  }
  return names;
}

std::vector<std::size_t> Plan::positions(std::uint64_t index) const {
  std::vector<std::size_t> positions(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    positions[a] = index % axes_[a].size();
    index /= axes_[a].size();
  }
  return positions;
}

std::vector<Value> Plan::values(std::uint64_t index) const {
  std::vector<Value> values;
  const auto at = positions(index);
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    for (std::size_t n = 0; n < axes_[a].names().size(); ++n) {
      values.push_back(axes_[a].value(at[a], n));
    }
  }
  return values;
}

Result<Point> Plan::point(std::uint64_t index) const {
  Point point;
  point.index = index;
  const auto names = axis_names();
  const auto now = values(index);
  const auto filled = [&](const std::string& pattern) {
    std::string text;
    std::size_t done = 0;
    for (const Placed& placed : placed_in(pattern)) {
      const auto at = std::find(names.begin(), names.end(), placed.name) - names.begin();
      text += pattern.substr(done, placed.begin - done);
      text += to_text(now[static_cast<std::size_t>(at)]);
      done = placed.end;
    }
    return text + pattern.substr(done);
  };
  for (const std::string& argument : command_) point.arguments.push_back(filled(argument));
  for (const Measure& measure : measures_) point.pointers.push_back(filled(measure.pointer));
  const auto seed = std::find(point.arguments.begin(), point.arguments.end(), "--seed");
  if (seed != point.arguments.end() && seed + 1 != point.arguments.end()) point.seed = *(seed + 1);
  DEMARC_TRY(point.input, input_of(point.arguments));
  std::string all = point.input;
  for (const auto* texts : {&point.arguments, &point.pointers}) {
    all += '\1';
    for (const std::string& text : *texts) {
      all += '\0';
      all += text;
    }
  }
  point.key = fmt::format("{:016x}", hash_of(all));
  return point;
}

}  // namespace demarc::sweep
