// PTX in, PTX out: a kernel that may use as many registers as its launches leave it, so that ptxas
// has less reason to keep values in local memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// The module with a kernel without .maxnreg and .minnctapersm, and with .maxntid lowered to
// `threads`, those of the largest block of its launches: the driver refuses larger ones then. A
// kernel with .reqntid keeps it. Error: there is no such kernel.
[[nodiscard]] Result<Module> with_most_registers(Module module, std::string_view kernel,
                                                 std::uint32_t threads);

}  // namespace demarc::ptx
