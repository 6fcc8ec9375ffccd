// Pages of the GPU's page tables.
#pragma once

#include <cstdint>

namespace demarc::gpu {

// The smallest page of every GPU; tables have pages of 64 KiB and 2 MiB, too.
inline constexpr std::uint64_t smallest_page_bytes = 4096;

}  // namespace demarc::gpu
