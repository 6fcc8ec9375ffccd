// A tenant's share of a coloured arena: the numbers that another process needs to use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "demarc/color/remainder_coloring.hpp"
#include "demarc/color/translation.hpp"

namespace demarc::lease {

// Bit i of `color` is the parity of (position & masks[i]), with the constant of the pages in it.
using Parities = color::Parities;
// The numbers by which the table of the pool is read.
using Remainders = color::RemainderSteps;

struct Share {
  std::uint64_t page_bytes = 0;  // of a page of the arena
  std::uint64_t pages = 0;       // of the arena
  std::uint64_t bytes = 0;       // linear bytes of the share
  std::variant<Parities, Remainders> colors;
  // Of remainders: bytes of the page behind the arena's last at which the table's patterns lie, in
  // the share's own colours, and the places of the arena's pages; nothing: they do not.
  std::optional<std::uint32_t> patterns_at = {};
  std::optional<std::uint32_t> places_at = {};
  friend bool operator==(const Share&, const Share&) = default;
};

// A mask of TPCs that was proved on the card, in the card's own bits.
struct ProvedMask {
  std::vector<std::uint64_t> disabled;  // four words of 32 bits; a set bit keeps launches off a TPC
  std::uint32_t sms = 0;                // SMs that are left
  friend bool operator==(const ProvedMask&, const ProvedMask&) = default;
};

// What the processes of a program get of a card.
struct Lease {
  std::string tenant;
  std::string card;  // UUID
  std::string tpcs;  // "0-15,20"
  ProvedMask mask;   // of these
  std::optional<std::uint32_t> sync_domain;
  std::uint64_t bytes = 0;  // linear bytes that may be taken; at most share.bytes
  Share share;
  std::string mps = {};  // CUDA_MPS_PIPE_DIRECTORY of its programs; empty: the card has no MPS
  friend bool operator==(const Lease&, const Lease&) = default;
};

}  // namespace demarc::lease
