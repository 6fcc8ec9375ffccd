// Names targets, and says which architectures can run PTX for them.
#include "demarc/fatbin/target.hpp"

#include <algorithm>
#include <array>

#include "demarc/base/numbers.hpp"

namespace demarc::fatbin {
namespace {

struct ScopeRow {
  TargetScope scope;
  std::string_view suffix;
};
constexpr ScopeRow scopes[] = {
    {TargetScope::any, ""}, {TargetScope::family, "f"}, {TargetScope::architecture, "a"}};

// CUDA C++ Programming Guide, "Family-Specific Features".
struct Family {
  std::uint32_t target;
  std::array<std::uint32_t, 2> members;
};
constexpr Family families[] = {{100, {100, 103}}, {120, {120, 121}}};

}  // namespace

std::string name(Target target) {
  return fmt::format("sm_{}{}", target.sm, scopes[static_cast<std::size_t>(target.scope)].suffix);
}

Result<Target> parse_target(std::string_view text) {
  const auto wrong = [&] {
    return invalid_input("'{}' is not a target; one is sm_90, sm_90a or sm_100f", text);
  };
  constexpr std::uint64_t most = 999;
  if (!text.starts_with("sm_")) return wrong();
  const std::string_view number = text.substr(3, text.find_first_not_of("0123456789", 3) - 3);
  const std::string_view suffix = text.substr(3 + number.size());
  const auto row = std::ranges::find(scopes, suffix, &ScopeRow::suffix);
  const auto sm = parse_u64(number, "");
  if (row == std::end(scopes) || !sm || *sm > most) return wrong();
  return Target{.sm = static_cast<std::uint32_t>(*sm), .scope = row->scope};
}

bool runs_ptx(std::uint32_t sm, Target target) {
  if (target.scope == TargetScope::any) return sm >= target.sm;
  if (sm == target.sm) return true;
  if (target.scope == TargetScope::architecture) return false;
  return std::ranges::any_of(families, [&](const Family& family) {
    return family.target == target.sm && std::ranges::count(family.members, sm) > 0;
  });
}

bool runs_machine_code(std::uint32_t sm, Target target) {
  constexpr std::uint32_t minors = 10;  // of a major version
  if (target.scope != TargetScope::any) return target.sm == sm;
  return target.sm / minors == sm / minors && target.sm <= sm;
}

}  // namespace demarc::fatbin
