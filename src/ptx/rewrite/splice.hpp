// Replacing pieces of a module's text: passes that leave the rest as it was written.
#pragma once

#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct Splice {
  std::size_t at = 0;      // offset in the text
  std::size_t length = 0;  // bytes replaced, 0: insertion
  std::string text;
};

// The splices must not overlap; those at the same place are applied in their order.
[[nodiscard]] std::string apply_splices(const std::string& text, std::vector<Splice> splices);

// The module of the spliced text, under the same name.
[[nodiscard]] Result<Module> spliced(const Module& module, std::vector<Splice> splices);

}  // namespace demarc::ptx
