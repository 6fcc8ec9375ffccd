// Machine code and first contents of variables in what ptxas makes.
#pragma once

#include <map>
#include <string>

namespace demarc::ptx::test {

// Name -> content of every .text.* section, and of those with first contents of variables, of a
// 64-bit little-endian ELF file; throws std::runtime_error when it is none.
[[nodiscard]] std::map<std::string, std::string> content_sections(const std::string& elf);

}  // namespace demarc::ptx::test
