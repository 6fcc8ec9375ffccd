// Accesses of one block whose addresses differ by known numbers, so that all of them lie in two
// chunks: that of the lowest address and that of the highest. These two are translated; the others
// choose one of them.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "rewrite/colored/register_accesses.hpp"

namespace demarc::ptx {

struct Neighbour {
  std::uint32_t group = 0;
  std::uint64_t distance = 0;  // from the lowest address of the group, in bytes
  std::uint64_t span = 0;      // of the highest address from the lowest, below a chunk
  std::uint32_t before = 0;    // accesses of the group in front of this one
};

// By instruction. `accesses` come in the order of the text. Groups have at least three addresses:
// two are dearer chosen than translated.
[[nodiscard]] std::map<std::uint32_t, Neighbour> find_neighbours(
    const Module& module, const Body& body, std::span<const RegisterAccess> accesses,
    std::uint64_t chunk_bytes);

}  // namespace demarc::ptx
