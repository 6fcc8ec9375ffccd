// Looks for hit rates that cannot be.
#include "impossible.hpp"

namespace demarc::sweep {
namespace {

std::optional<std::string> rate_below(const Json& json, const std::string& place) {
  for (const auto& [key, value] : json.items()) {
    const std::string at = fmt::format("{}/{}", place, key);
    if (value.is_structured()) {
      if (auto found = rate_below(value, at)) return found;
      continue;
    }
    if (!value.is_number() || !key.ends_with("hit_rate")) continue;
    const auto rate = value.get<double>();
    if (rate < 0 || rate > 1) {
      return fmt::format("the result cannot be right: {} is {}, and a hit rate is between 0 and 1",
                         at, rate);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> impossible_rate(const Json& result) {
  if (!result.is_structured()) return std::nullopt;
  return rate_below(result, "");
}

}  // namespace demarc::sweep
