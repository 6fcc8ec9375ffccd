// Memory synchronisation domains [CUDA C++ Programming Guide, "Memory Synchronization Domains"]:
// the end of a kernel, and a fence in it, wait for all outstanding accesses of its domain,
// including those to host memory. If parts of a card have domains of their own, they do not wait
// for each other's accesses.
//
// What is ordered between two kernels of one domain is ordered between kernels of two domains only
// by fences of system scope: kernels that share data keep one domain.
#pragma once

#include <cstdint>

#include "demarc/driver/stream.hpp"

namespace demarc::cuda {

// How many domains the card has; 1 if the card or the driver knows of none (before Hopper and CUDA
// 12.0).
[[nodiscard]] std::uint32_t sync_domain_count(const Gpu& gpu);

// All later launches into the stream belong to `domain`, also those captured from it. A launch's
// own choice between "default" and "remote" chooses the same domain. check_failed if the driver
// does not keep the setting.
[[nodiscard]] Result<void> set_sync_domain(const Gpu& gpu, CuStream stream, std::uint32_t domain);

}  // namespace demarc::cuda
