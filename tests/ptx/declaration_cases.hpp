// Modules with declarations, headers, labels and calls, each right or wrong in one place: what the
// parser says of them is kept, and compared with ptxas where it is.
#pragma once

#include <string>
#include <vector>

namespace demarc::ptx::test {

struct DeclarationCase {
  std::string what;  // the part that matters
  std::string module;
  bool taken = false;
};

[[nodiscard]] std::vector<DeclarationCase> declaration_cases();

}  // namespace demarc::ptx::test
