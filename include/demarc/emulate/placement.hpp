// Where the emulator puts the variables of a module, for code that follows addresses without
// running the kernels.
#pragma once

#include <cstdint>
#include <vector>

namespace demarc::ptx {
struct Module;
}

namespace demarc::emulate {

// The address of each variable of ptx::Module::variables that is in global memory, in bytes; 0 for
// other state spaces. Each begins at a multiple of 256, at least 256 bytes behind the end of the
// one before, outside of all buffers.
[[nodiscard]] std::vector<std::uint64_t> global_variable_addresses(const ptx::Module& module);

}  // namespace demarc::emulate
