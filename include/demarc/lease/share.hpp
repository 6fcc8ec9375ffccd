// A tenant's share of a coloured arena, in the numbers that another process needs to use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace demarc::lease {

// Colours that are parities: bit i of `color` is the parity of (position & masks[i]).
struct Parities {
  std::vector<std::uint64_t> masks;
  std::uint32_t color = 0;
  friend bool operator==(const Parities&, const Parities&) = default;
};

// Colours that are runs of remainders: gpu::RemainderSteps (gpu/remainder_coloring.hpp), member by
// member.
struct Remainders {
  std::uint32_t chunk_shift = 0;
  std::uint32_t page_shift = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t reciprocal = 0;
  std::uint32_t reciprocal_shift = 0;
  std::uint32_t skipped = 0;
  std::uint32_t pages_at = 0;
  friend bool operator==(const Remainders&, const Remainders&) = default;
};

struct Share {
  std::uint64_t page_bytes = 0;  // of a page of the arena
  std::uint64_t pages = 0;       // of the arena
  std::uint64_t bytes = 0;       // linear bytes of the share
  std::variant<Parities, Remainders> colors;
  friend bool operator==(const Share&, const Share&) = default;
};

// What the processes of a program have of a card.
struct Lease {
  std::string tenant;
  std::string card;  // UUID
  std::string tpcs;  // "0-15,20"
  std::optional<std::uint32_t> sync_domain;
  std::uint64_t bytes = 0;  // linear bytes that may be taken; at most share.bytes
  Share share;
  std::string mps = {};  // CUDA_MPS_PIPE_DIRECTORY of its programs; empty: the card has no MPS
  friend bool operator==(const Lease&, const Lease&) = default;
};

}  // namespace demarc::lease
