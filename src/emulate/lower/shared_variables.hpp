// Where the shared variables of a kernel and of everything it may call lie. The arrays without a
// size come last: all of these are the dynamic shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "demarc/ptx/ir.hpp"
#include "lower/lower.hpp"
#include "lower/refusals.hpp"

namespace demarc::emulate {

class SharedVariables {
 public:
  SharedVariables(const LowerRequest& request, Refusals& refusals);

  // Empty: no shared variable, or one that is refused.
  [[nodiscard]] std::optional<std::uint32_t> offset_of(const ptx::Variable& variable) const;
  // With the sizes that they have in a launch with so much dynamic shared memory.
  [[nodiscard]] std::vector<SharedPlace> places(std::uint32_t dynamic_bytes) const;
  // Dynamic shared memory not included.
  [[nodiscard]] std::uint32_t bytes() const { return bytes_; }

 private:
  void place(const ptx::Variable& variable, Refusals& refusals);

  std::map<const ptx::Variable*, std::uint32_t> offset_;
  std::vector<const ptx::Variable*> dynamic_;
  std::uint32_t bytes_ = 0;
};

}  // namespace demarc::emulate
