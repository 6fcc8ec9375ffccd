// The machine code in what ptxas makes.
#pragma once

#include <map>
#include <string>

namespace demarc::ptx::test {

// Name -> content of every .text.* section of a 64-bit little-endian ELF file; throws
// std::runtime_error when it is none.
[[nodiscard]] std::map<std::string, std::string> text_sections(const std::string& elf);

}  // namespace demarc::ptx::test
