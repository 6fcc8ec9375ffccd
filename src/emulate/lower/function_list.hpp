// The functions of a program: the kernel, then each function in the order in which it is first
// called.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/ptx/ir.hpp"
#include "lower/refusals.hpp"
#include "machine.hpp"

namespace demarc::emulate {

// The function with the body of what a symbol names; null when the module has none.
[[nodiscard]] const ptx::Function* definition_of(const ptx::Module& module, std::uint32_t index);

class FunctionList {
 public:
  FunctionList(Program& program, Refusals& refusals) : program_(program), refusals_(refusals) {}

  // Its index in Program::functions. A function that is new is put at the end; its parameters and
  // results lie at the start of its frame, where callers find them.
  std::uint32_t index_of(const ptx::Function& function);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(list_.size()); }
  [[nodiscard]] const ptx::Function& operator[](std::uint32_t index) const { return *list_[index]; }

 private:
  [[nodiscard]] CodeFunction begin(const ptx::Function& function);

  Program& program_;
  Refusals& refusals_;
  std::vector<const ptx::Function*> list_;
};

}  // namespace demarc::emulate
