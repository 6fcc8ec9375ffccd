// What an executable or a library of the CPU says of the libraries that it is linked with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::fatbin {

struct Linked {
  std::uint16_t machine = 0;        // e_machine of the header
  std::string interpreter;          // the dynamic loader; empty: a library, or linked statically
  std::vector<std::string> needed;  // names of libraries (DT_NEEDED), in their order
};

// Reads an ELF file's content. `path` stands in the messages. What lies outside of the file, or has
// no end, is an error.
[[nodiscard]] Result<Linked> linked_of(std::string_view content, std::string_view path);

}  // namespace demarc::fatbin
