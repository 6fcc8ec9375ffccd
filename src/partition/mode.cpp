// The table of modes, and questions that it answers.
#include "demarc/partition/mode.hpp"

#include <algorithm>
#include <array>

#include "demarc/base/text.hpp"

namespace demarc::partition {
namespace {

struct Row {
  Mode mode;
  std::string_view name;
  ModeTraits traits;
};

constexpr auto rows = std::to_array<Row>({
#define DEMARC_MODE(name, ...) {Mode::name, #name, {__VA_ARGS__}},
#include "demarc/partition/modes.def"
#undef DEMARC_MODE
});

constexpr std::array<Mode, rows.size()> modes = [] {
  std::array<Mode, rows.size()> out{};
  std::transform(rows.begin(), rows.end(), out.begin(), [](const Row& row) { return row.mode; });
  return out;
}();

// Rows follow each other as their enumerators do.
constexpr const Row& row_of(Mode mode) {
  return rows[static_cast<std::size_t>(mode)];
}

}  // namespace

std::span<const Mode> all_modes() {
  return modes;
}

const ModeTraits& traits_of(Mode mode) {
  return row_of(mode).traits;
}

std::string_view to_string(Mode mode) {
  return row_of(mode).name;
}

Result<Mode> parse_mode(std::string_view text) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == text; });
  if (found != rows.end()) return found->mode;
  return invalid_input("mode '{}': the modes are {}", text,
                       mode_names([](const ModeTraits&) { return true; }, ", "));
}

std::string mode_names(bool (*holds)(const ModeTraits&), std::string_view separator) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) {
    if (holds(row.traits)) names.push_back(row.name);
  }
  return joined(names, separator);
}

std::string modes_help() {
  std::string out;
  for (const Row& row : rows) {
    append(out, "{}{}: {}", out.empty() ? "" : "\n", row.name, row.traits.help);
  }
  return out;
}

}  // namespace demarc::partition
