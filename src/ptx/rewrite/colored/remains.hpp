// What of a module is left out of its coloured form.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "demarc/ptx/colored.hpp"
#include "rewrite/splice.hpp"

namespace demarc::ptx {

// Makes of the declaration of vprintf a function that prints nothing, and has all calls name it.
void silence_printing(const Module& module, std::vector<Splice>& splices);

// What stays, by index in Module::functions and Module::variables: `functions` (definitions) with
// their declarations and what the driver brings for them; `variables`, what they hold the addresses
// of, and everything that is not global memory.
struct Remains {
  std::set<std::uint32_t> functions;
  std::set<std::uint32_t> variables;
};
[[nodiscard]] Remains remains_of(const Module& module, const std::set<std::uint32_t>& functions,
                                 std::set<std::uint32_t> variables, ColoredPrinting printing);

// `module` without the rest; itself where there is none. Debugging sections that name what is gone
// stay, and ptxas refuses them.
[[nodiscard]] Result<Module> without_the_rest(Module module, const Remains& remains);

}  // namespace demarc::ptx
