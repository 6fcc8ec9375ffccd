// PTX that must parse as a whole.
#pragma once

#include <string>

#include "demarc/base/result.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::study {

// An error is the first diagnostic; `name` is what it calls the text.
[[nodiscard]] Result<ptx::Module> parse_complete(const std::string& text, const std::string& name);

}  // namespace demarc::study
