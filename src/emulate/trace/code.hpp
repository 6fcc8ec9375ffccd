// The bytes of a trace file's chunks: variable-length integers, addresses as distances from the
// last access of the same instruction. docs/trace-format.md describes them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::emulate {

// One chunk each way. A coder lives as long as a kernel's chunks; encoder and decoder must see the
// same chunks.
class TraceCoder {
 public:
  explicit TraceCoder(std::size_t instructions) : last_(instructions + 1, 0) {}
  void encode(std::span<const std::uint64_t> words, std::string& out);
  // Appends the words of `bytes`; an error when they are no chunk.
  [[nodiscard]] Result<void> decode(std::string_view bytes, std::vector<std::uint64_t>& words);

 private:
  std::vector<std::uint64_t> last_;  // by instruction: the first address of its last access
};

}  // namespace demarc::emulate
