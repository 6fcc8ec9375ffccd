// One function of a module with coloured addressing: what changes in its text, or why it cannot be.
#pragma once

#include <vector>

#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/constant_operands.hpp"
#include "rewrite/colored/frames.hpp"
#include "rewrite/colored/variables.hpp"
#include "rewrite/splice.hpp"

namespace demarc::ptx {

// What the functions of a module share.
struct ColoredContext {
  const Module& module;
  const Translation& translation;
  const ColoredOptions& options;
  const PlaceOperands& places;  // ColoredOptions::places
  const BlockLayout& variables;
  const Frames& frames;
  bool keeps_local = false;  // some function has local variables
};

struct RewrittenFunction {
  std::vector<Splice> splices;
  std::vector<ColoredRefusal> refusals;
  std::uint64_t accesses = 0;       // that are translated
  std::uint64_t shared = 0;         // of these, if ColoredOptions::counts_shared
  std::vector<std::uint32_t> kept;  // Module::variables whose own address stays in use, ascending
  bool has_policies = false;        // accesses have cache policies, if the module can
};

// `function`: index of a definition. `windows`: origins other than coloured memory that generic
// addresses may have in the kernels that run it.
[[nodiscard]] RewrittenFunction rewrite_function(const ColoredContext& context,
                                                 std::uint32_t function, std::uint8_t windows);

}  // namespace demarc::ptx
