// Which functions a kernel may run.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

class Reach {
 public:
  explicit Reach(const Module& module);

  // Definitions that a call in `function` may run; an indirect call may run every function whose
  // address is taken anywhere. Ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& callees(std::uint32_t function) const {
    return callees_[function];
  }
  // `function` and all that it runs, ascending.
  [[nodiscard]] std::vector<std::uint32_t> from(std::uint32_t function) const;

 private:
  std::vector<std::vector<std::uint32_t>> callees_;  // by index in Module::functions
};

}  // namespace demarc::ptx
