// Lists of indices for people and for JSON.
#pragma once

#include <string>
#include <vector>

#include "demarc/base/json.hpp"
#include "demarc/base/strong.hpp"

namespace demarc::sim {

// "0-3,8" of ascending indices.
template <class Tag, class Raw>
[[nodiscard]] std::string index_ranges(const std::vector<Location<Tag, Raw>>& indices) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t j = i;
    while (j + 1 < indices.size() && indices[j + 1] == indices[j] + 1) ++j;
    text += text.empty() ? "" : ",";
    text += j == i ? fmt::format("{}", indices[i]) : fmt::format("{}-{}", indices[i], indices[j]);
    i = j + 1;
  }
  return text;
}

// [0, 1, 2, 3, 8]
template <class Tag, class Raw>
[[nodiscard]] Json index_array(const std::vector<Location<Tag, Raw>>& indices) {
  Json array = Json::array();
  for (const Location<Tag, Raw> index : indices) array.push_back(index.raw());
  return array;
}

}  // namespace demarc::sim
