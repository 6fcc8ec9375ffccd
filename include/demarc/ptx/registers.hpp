// PTX in, PTX out: a kernel may use as many registers as its launches allow, so that ptxas has less
// reason to keep values in local memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Removes .maxnreg and .minnctapersm from a kernel of the module and lowers its .maxntid to
// `threads`, the threads of the largest block of its launches. The driver then refuses larger
// blocks. A kernel with .reqntid keeps it. It is an error if there is no such kernel.
[[nodiscard]] Result<Module> with_most_registers(Module module, std::string_view kernel,
                                                 std::uint32_t threads);

}  // namespace demarc::ptx
