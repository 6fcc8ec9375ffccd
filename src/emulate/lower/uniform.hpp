// Which registers can live in a uniform slot: at every read, the lanes that read see what the last
// write by any lane of the warp left there. Stricter than equality of values: loops that lanes
// leave at different times and writes in divergent branches that are read behind them are excluded.
#pragma once

#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::emulate {

struct UniformRegisters {
  std::vector<bool> uniform;  // by register: same value for all lanes; predicates included
  std::vector<bool> zeroed;   // by register: may be read before it is written
};

[[nodiscard]] UniformRegisters find_uniform_registers(const ptx::Module& module,
                                                      const ptx::Function& function,
                                                      const ptx::Cfg& cfg);

}  // namespace demarc::emulate
