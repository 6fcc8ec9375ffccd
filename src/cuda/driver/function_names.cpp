// Splits the table of names.
#include "driver/function_names.hpp"

#include <algorithm>
#include <vector>

#include "driver/driver_call.hpp"

namespace demarc::cuda {
namespace {

constexpr std::string_view known_functions =
#include "driver/function_names.def"
    ;

std::vector<std::string_view> split_names() {
  std::vector<std::string_view> names{""};
  for (std::size_t at = 0; at < known_functions.size();) {
    const std::size_t end = known_functions.find(' ', at);
    names.push_back(known_functions.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

}  // namespace

std::span<const std::string_view> function_names() {
  static const std::vector<std::string_view> names = split_names();
  return names;
}

bool is_known_function(std::string_view versioned_name) {
  static const std::vector<std::string_view> sorted = [] {
    std::vector<std::string_view> names;
    for (const std::string_view name : function_names()) names.push_back(without_stream(name));
    std::sort(names.begin(), names.end());
    return names;
  }();
  return std::binary_search(sorted.begin() + 1, sorted.end(), versioned_name);
}

}  // namespace demarc::cuda
