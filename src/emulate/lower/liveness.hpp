// Registers that a function may read before it writes them.
#pragma once

#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::emulate {

// By register, predicates included. A guarded write counts as none: some lanes may not take part.
[[nodiscard]] std::vector<bool> live_at_entry(const ptx::Body& body, const ptx::Cfg& cfg);

}  // namespace demarc::emulate
