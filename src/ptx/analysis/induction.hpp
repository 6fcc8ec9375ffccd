// Induction variables: registers that a loop changes by the same constant on every trip.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/def_use.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct InductionVariable {
  std::uint32_t loop = 0;  // Cfg::loops
  std::uint32_t reg = 0;   // the register, as it is at the loop's header
  std::uint32_t initial =
      no_index;              // instruction outside of the loop that writes it, where there is one
  std::uint32_t update = 0;  // instruction in the loop that writes it: add or sub
  // The step: a constant, or a register that the loop does not change.
  std::int64_t step = 0;
  std::uint32_t step_register = no_index;
  bool step_negated = false;  // the register is subtracted
};

// When the loop goes on: `variable` compared (signed or unsigned as the setp's type says) with a
// register that the loop does not change, or an immediate.
struct TripTest {
  std::uint32_t loop = 0;
  std::uint32_t compare = 0;      // the setp instruction
  std::uint32_t branch = 0;       // the branch it decides
  bool leaves_when_true = false;  // the loop ends when the compare's predicate is true
  std::uint32_t variable_operand =
      0;                             // which operand of the setp is the induction variable (1 or 2)
  std::uint32_t variable = 0;        // index in LoopFacts::variables
  bool tests_updated_value = false;  // the value after the update, else before it
};

struct LoopFacts {
  std::vector<InductionVariable> variables;
  std::vector<TripTest> tests;
};

[[nodiscard]] LoopFacts find_induction(const Module& module, const Body& body, const Cfg& cfg,
                                       const DefUse& def_use);

}  // namespace demarc::ptx
