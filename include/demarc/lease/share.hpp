// A tenant's share of a coloured arena: the numbers that another process needs to use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "demarc/color/law.hpp"

namespace demarc::lease {

struct Share {
  std::uint64_t page_bytes = 0;  // bytes of a page of the arena
  std::uint64_t pages = 0;       // pages of the arena
  std::uint64_t bytes = 0;       // linear bytes of the share
  color::LawPtr law = color::make_law(color::Parities{});
  // Bytes of the page behind the arena's last at which the parts of the law's table lie, in the
  // share's own colours: its patterns, and the places of the arena's pages. Nothing: they do not.
  std::optional<std::uint32_t> patterns_at = {};
  std::optional<std::uint32_t> places_at = {};
  friend bool operator==(const Share& a, const Share& b) {
    const auto numbers = [](const Share& share) {
      return std::tie(share.page_bytes, share.pages, share.bytes, share.patterns_at,
                      share.places_at);
    };
    return numbers(a) == numbers(b) && to_text(*a.law) == to_text(*b.law);
  }
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
  std::uint64_t window_bytes = 0;  // of `bytes`, that the page table may show at a time
  friend bool operator==(const Lease&, const Lease&) = default;
};

}  // namespace demarc::lease
