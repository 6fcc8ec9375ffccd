// Where the emulator puts the variables of a module: for those who follow addresses without running
// the code.
#pragma once

#include <cstdint>
#include <vector>

namespace demarc::ptx {
struct Module;
}

namespace demarc::emulate {

// By index of ptx::Module::variables: the address of a variable in global memory, in bytes; 0: of
// another state space. Each begins at a multiple of 256, at least 256 bytes behind the end of the
// one before, outside of all buffers.
[[nodiscard]] std::vector<std::uint64_t> global_variable_addresses(const ptx::Module& module);

}  // namespace demarc::emulate
