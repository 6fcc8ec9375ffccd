// The kernels of libdemarc_blas.so in the driver: loaded when they are first launched in a context.
#pragma once

#include <cstdint>

#include "types.hpp"

namespace demarc::blas {

// A context is current afterwards: the program's, or else the primary one of the first card, which
// CUDA's runtime takes, too. arch_mismatch: the card cannot run the kernels.
Code find_context();

// The current context, after find_context() where there is none: a thread that only calls this
// library has none. Null if there cannot be one.
Context current_context();

struct KernelShape {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t threads = 1;
  std::uint32_t shared_bytes = 0;  // dynamic
};

// Launches a kernel of the module `module`, whose only parameter is `arguments`. It may load the
// module, also while the stream is captured.
Code launch(const char* module, const char* kernel, const KernelShape& shape, Stream stream,
            const void* arguments);

// The value of an attribute of the current context's card, or `otherwise`.
int card_attribute(int attribute, int otherwise);

// Memory of the card, or 0.
std::uint64_t allocate(std::size_t bytes);
void release(std::uint64_t memory);
// In the stream, and waits for it.
Code copy_to_host(void* to, std::uint64_t from, std::size_t bytes, Stream stream);

}  // namespace demarc::blas
