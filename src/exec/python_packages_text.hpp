// The program that an interpreter runs to find packages: src/exec/python_packages.py.
#pragma once

#include <string_view>

namespace demarc::cuda {

extern const std::string_view python_packages_text;

}  // namespace demarc::cuda
