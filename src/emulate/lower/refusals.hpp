// What of a kernel the emulator does not cover. Lowering goes on behind a refusal, so that one
// error names everything that stands in the way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::emulate {

// What a variable would bring the memory of its kind to.
struct MemoryUse {
  std::uint64_t bytes = 0;
  std::uint64_t most = 0;
  std::string_view memory;  // "shared"
};

class Refusals {
 public:
  explicit Refusals(const ptx::Module& module) : module_(module) {}

  void add(const ptx::Instruction& instruction, std::string_view reason);
  void add(const ptx::Function& function, std::string reason);
  // False, and a refusal, when it is more than the most.
  [[nodiscard]] bool fits(const ptx::Variable& variable, const MemoryUse& use);

  // An error that lists the refusals in the order in which they came.
  [[nodiscard]] Result<void> verdict(std::string_view source) const;

 private:
  struct Entry {
    std::uint32_t line = 0;
    std::string text;
    std::string reason;
  };

  const ptx::Module& module_;
  std::vector<Entry> entries_;
};

}  // namespace demarc::emulate
