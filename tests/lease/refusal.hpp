// What an error says, for assertions that are to fail, not to crash, where there is none.
#pragma once

#include <string>

#include "demarc/base/result.hpp"

namespace demarc::test {

template <class Value>
std::string why(const Result<Value>& result) {
  return result ? "taken" : result.error().message;
}

}  // namespace demarc::test
