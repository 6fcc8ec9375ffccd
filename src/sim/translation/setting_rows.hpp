// Makes rows of the table of settings, for fields of Settings and of an application's own struct.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "demarc/base/numbers.hpp"
#include "demarc/sim/translation/settings.hpp"

namespace demarc::sim::translation {

template <class Owner, class Any>
auto& values_of(Any& settings) {
  if constexpr (std::is_same_v<Owner, Settings>) {
    return settings;
  } else {
    return settings.applications.template of<Owner>();
  }
}

template <class Owner>
SettingInfo number(std::string_view name, std::string_view meaning, std::string_view range,
                   std::uint32_t Owner::*field) {
  const auto dots = range.find("..");
  const std::uint64_t low = *parse_u64(range.substr(0, dots), name);
  const std::uint64_t high = *parse_u64(range.substr(dots + 2), name);
  return {name, meaning, range,
          [field](const Settings& s) { return std::to_string(values_of<Owner>(s).*field); },
          [=](Settings& s, std::string_view text) -> Result<void> {
            DEMARC_TRY(const std::uint64_t value, parse_u64(text, name));
            if (value < low || value > high) {
              return invalid_input("{}: {} is not within {}", name, value, range);
            }
            values_of<Owner>(s).*field = static_cast<std::uint32_t>(value);
            return {};
          }};
}

template <class Owner>
SettingInfo power_of_two(std::string_view name, std::string_view meaning, std::string_view range,
                         std::uint32_t Owner::*field) {
  SettingInfo info = number(name, meaning, range, field);
  info.power_of_two = true;
  return info;
}

template <class Owner, class Enum>
SettingInfo choice(std::string_view name, std::string_view meaning, std::string_view range,
                   Enum Owner::*field, Enum first = Enum{}) {
  // The names in `range` stand in the order of the enumerators from `first` on.
  const auto nth = [range](int wanted) {
    std::string_view rest = range;
    for (int i = 0; i < wanted; ++i) rest.remove_prefix(rest.find('|') + 1);
    return rest.substr(0, rest.find('|'));
  };
  return {name, meaning, range,
          [=](const Settings& s) {
            return std::string(
                nth(static_cast<int>(values_of<Owner>(s).*field) - static_cast<int>(first)));
          },
          [=](Settings& s, std::string_view text) -> Result<void> {
            int count = 1;
            for (const char c : range) count += c == '|' ? 1 : 0;
            for (int i = 0; i < count; ++i) {
              if (nth(i) == text) {
                values_of<Owner>(s).*field = static_cast<Enum>(i + static_cast<int>(first));
                return {};
              }
            }
            return invalid_input("{}: '{}' is not one of {}", name, text, range);
          }};
}

}  // namespace demarc::sim::translation
