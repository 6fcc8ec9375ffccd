// Finds the names that are nearest to a mistyped one.
#include "demarc/base/near_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

#include "demarc/base/text.hpp"

namespace demarc {
namespace {

constexpr std::size_t max_compared_letters = 64;
constexpr std::size_t max_near_names = 3;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, max_compared_letters);
  b = b.substr(0, max_compared_letters);
  // For the three last prefixes of a, the distances to each prefix of b.
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

std::vector<std::string> near_names(std::string_view name, std::span<const std::string> names) {
  std::vector<std::pair<std::size_t, std::size_t>> order;
  const std::string wanted = lower_case(name);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t away = edit_distance(wanted, lower_case(names[i]));
    const std::size_t letters = std::max(wanted.size(), names[i].size());
    if (away <= std::max<std::size_t>(letters / 3, 1)) order.emplace_back(away, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> near;
  for (std::size_t i = 0; i < std::min(max_near_names, order.size()); ++i) {
    near.push_back(names[order[i].second]);
  }
  return near;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> names) {
  const auto near = near_names(name, names);
  return near.empty() ? std::string() : "; did you mean " + joined(near, " or ") + "?";
}

std::string did_you_mean(std::string_view name, std::span<const std::string> names,
                         std::string_view command) {
  const std::string near = did_you_mean(name, names);
  return fmt::format("{} {} shows all", near.empty() ? ";" : near, command);
}

}  // namespace demarc
