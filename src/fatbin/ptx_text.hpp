// PTX text whose end is not known: where it ends, what it is for.
#pragma once

#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/target.hpp"

namespace demarc::fatbin {

// The text up to a NUL or the end of `bytes`. It begins, behind blanks and comments, with
// ".version". Reads nothing behind the first byte that no text has.
[[nodiscard]] Result<std::string_view> ptx_text(std::string_view bytes, std::string_view name);

// The first word of its .target: what it says itself that it is for.
[[nodiscard]] Result<Target> stated_target(std::string_view text, std::string_view name);

}  // namespace demarc::fatbin
