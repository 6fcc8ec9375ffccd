// What the program knows by name: for demarc list, for completion and for "did you mean".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace demarc::cli {

struct KnownName {
  std::string name;
  std::string short_name;  // that people type; may be empty
  std::string meaning;     // one line
};

struct NameKind {
  std::string_view kind;  // "workloads"
  std::vector<KnownName> (*names)();
};
[[nodiscard]] std::span<const NameKind> name_kinds();

}  // namespace demarc::cli
