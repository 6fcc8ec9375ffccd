// Recognises modules that a rewriting pass has gone over before.
#include "rewrite/marks.hpp"

#include <algorithm>
#include <string_view>

namespace demarc::ptx {
namespace {

struct Mark {
  Rewriting rewriting;
  std::string_view is;    // what such a function is
  std::string_view name;  // that the pass gives to a register, a parameter or a kernel
};
constexpr Mark marks[] = {
    {Rewriting::colored, "coloured", "%demarc_a"},
    {Rewriting::affine, "SM-affine", "demarc_queue"},
    {Rewriting::timed, "timed", "demarc_stamps"},
    {Rewriting::fused, "fused", "demarc_fused"},
    {Rewriting::part, "split by blocks", "demarc_first_block"},
};

template <class Range>
bool declares(const Range& declared, std::string_view name) {
  return std::any_of(declared.begin(), declared.end(),
                     [&](const auto& one) { return one.name == name; });
}

bool bears(const Function& function, std::string_view name) {
  return function.name == name || declares(function.parameters, name) ||
         declares(function.body.registers, name);
}

}  // namespace

Result<void> check_not_rewritten(const Module& module, const char* wanted,
                                 std::initializer_list<Rewriting> refused) {
  for (const Mark& mark : marks) {
    if (std::find(refused.begin(), refused.end(), mark.rewriting) == refused.end()) continue;
    for (const Function& function : module.functions) {
      if (!bears(function, mark.name)) continue;
      return invalid_input(
          "{}:{}: '{}' is {} already (it has '{}') and cannot be {}; give the original text",
          module.source_name, function.line, function.name, mark.is, mark.name, wanted);
    }
  }
  return {};
}

}  // namespace demarc::ptx
