// Which calls run functions that are known, so that the compiler says how large their stacks are.
#pragma once

#include <string_view>
#include <vector>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

class Callees {
 public:
  Callees(const Module& module, const Body& body) : module_(module), body_(body) {}

  // What is wrong with a call that takes an address which need not be that of a function of this
  // module; empty: nothing is. A list of its targets in the text is a promise of the program's, and
  // does not count.
  [[nodiscard]] std::string_view objection(const Instruction& call);

 private:
  [[nodiscard]] bool are_known(const Instruction& call);
  void follow_registers();
  [[nodiscard]] bool is_followed(const Operand& operand) const;

  const Module& module_;
  const Body& body_;
  std::vector<bool> followed_;  // registers that hold nothing but addresses of functions
};

}  // namespace demarc::ptx
