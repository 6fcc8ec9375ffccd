// Where a warp waits for what it has asked of global memory.
#pragma once

#include <vector>

#include "demarc/locality/runs.hpp"
#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::locality {

// Sets Access::waits. Loads of a basic block whose addresses come from no load of the block are
// under way together, as `ptxas` moves them: the last of them waits for all. A store waits for
// nothing, an atomic if its result is read. `accesses`: of this body, ascending.
void mark_waits(const ptx::Body& body, const ptx::Cfg& cfg, std::vector<Access>& accesses);

}  // namespace demarc::locality
