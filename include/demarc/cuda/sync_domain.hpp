// Memory synchronisation domains [CUDA C++ Programming Guide, "Memory Synchronization Domains"]:
// the end of a kernel, and a fence in it, wait for what its whole domain has outstanding, accesses
// to host memory among it. Parts of a card with domains of their own do not wait for each other's.
//
// What is ordered between two kernels of one domain is ordered between kernels of two domains only
// by fences of system scope: kernels that share data keep one domain.
#pragma once

#include <cstdint>

#include "demarc/cuda/stream.hpp"

namespace demarc::cuda {

// How many the card has; 1 where it, or the driver, knows of none (before Hopper and CUDA 12.0).
[[nodiscard]] std::uint32_t sync_domain_count(const Gpu& gpu);

// All later launches into the stream are of `domain`, those captured from it too. A launch's own
// choice between "default" and "remote" chooses the same domain. check_failed when the driver does
// not keep what it was told.
[[nodiscard]] Result<void> set_sync_domain(const Gpu& gpu, CuStream stream, std::uint32_t domain);

}  // namespace demarc::cuda
