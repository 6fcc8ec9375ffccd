// Decides whether a module can have cache policies, and raises its target where needed.
#include "rewrite/colored/cache_policies.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "demarc/ptx/colored.hpp"

namespace demarc::ptx {
namespace {

constexpr std::uint32_t first_version = 74;
constexpr std::uint32_t first_target = 80;
// Older ones have instructions that newer targets refuse, such as votes without a mask.
constexpr std::uint32_t first_raised = 70;
constexpr std::string_view prefix = "sm_";

// The target among other words, such as "texmode_independent".
const std::string_view* target_of(const Module& module) {
  const auto found =
      std::find_if(module.targets.begin(), module.targets.end(),
                   [](std::string_view target) { return target.starts_with(prefix); });
  return found == module.targets.end() ? nullptr : &*found;
}

bool knows_policies(const Module& module) {
  return module.version.major * 10 + module.version.minor >= first_version;
}

// 90 for "sm_90a"; 0 where the module names no such target.
std::uint32_t target_number(const Module& module) {
  const std::string_view* const target = target_of(module);
  std::uint32_t number = 0;
  if (target != nullptr) {
    std::from_chars(target->data() + prefix.size(), target->data() + target->size(), number);
  }
  return number;
}

}  // namespace

std::optional<Splice> target_with_policies(const Module& module, std::uint32_t card) {
  const std::uint32_t target = target_number(module);
  if (!knows_policies(module) || target < first_raised || target >= first_target ||
      card < first_target) {
    return std::nullopt;
  }
  const std::string_view written = *target_of(module);
  return Splice{static_cast<std::size_t>(written.data() - module.text->data()), written.size(),
                "sm_80"};
}

bool has_cache_policies(const Module& module, std::uint32_t card) {
  return knows_policies(module) &&
         (target_number(module) >= first_target || target_with_policies(module, card));
}

std::string_view kept_in_l1(const Module& module) {
  constexpr std::uint32_t hints_version = 74;
  constexpr std::uint32_t hints_target = 70;
  return module.version.major * 10 + module.version.minor >= hints_version &&
                 target_number(module) >= hints_target
             ? ".L1::evict_last"
             : "";
}

}  // namespace demarc::ptx
