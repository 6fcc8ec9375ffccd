// What a module was rewritten for already, told by the names that passes leave in it: they are part
// of the text, so they survive printing and parsing.
#pragma once

#include <initializer_list>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

enum class Rewriting { colored, affine, timed, fused, part };

// Refuses a module that was rewritten in one of those ways; the message names the function, its
// line and the name that tells. `wanted` is what the pass would do, as in "made SM-affine".
[[nodiscard]] Result<void> check_not_rewritten(const Module& module, const char* wanted,
                                               std::initializer_list<Rewriting> refused);

}  // namespace demarc::ptx
