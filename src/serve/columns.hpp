// How tables write what they hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/text.hpp"

namespace demarc::serve {

// All lines have as many cells as the first one.
inline std::string in_columns(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) append(row, "{:<{}}  ", line[i], widths[i]);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace demarc::serve
