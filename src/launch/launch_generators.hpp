// Structured contents: graphs, meshes, permutations. One row of the table in launch_generators.cpp
// per name.
#pragma once

#include <cstddef>
#include <span>

#include "demarc/launch/launch.hpp"

namespace demarc::gpu {

// Buffers made by generators of one family with the same parameters fit each other, whatever their
// order.
[[nodiscard]] Result<void> generate(const Launch& launch, const Buffer& buffer,
                                    std::span<std::byte> out);

}  // namespace demarc::gpu
