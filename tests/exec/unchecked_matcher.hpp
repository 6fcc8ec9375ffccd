// What of a program could not be looked at, in tests.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "demarc/exec/program_files.hpp"

namespace demarc::cuda {

inline auto unchecked(const std::string& what, const std::string& why) {
  return testing::AllOf(testing::Field(&Unchecked::what, testing::HasSubstr(what)),
                        testing::Field(&Unchecked::why, testing::HasSubstr(why)));
}

}  // namespace demarc::cuda
