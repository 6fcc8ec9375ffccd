// What a pool knows of its colours: how they were found, the law of each share, and what follows
// from the law for copies and audits. A kind of colours is one class here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "demarc/card/card.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/color/color_set.hpp"
#include "demarc/color/coloring.hpp"
#include "demarc/color/law.hpp"

namespace demarc::cuda {

struct RemainderColors;  // remainder_colors.hpp

// Bytes of the page that an arena keeps aside at which tables of one colour lie.
struct PlacedTables {
  // All patterns have its colour; nothing: it has too few remainders for that.
  std::optional<std::uint32_t> patterns;
  // The place of the arena's first page; nothing: the page that is kept aside is full.
  std::optional<std::uint32_t> places;
};

struct ShareColors {
  color::LawPtr law;
  color::SharePlace place;  // in this process; the arena is its own window where the law lets it
  std::uint64_t bytes = 0;  // linear bytes that lie in the arena's pages
  PlacedTables placed = {};
};

// What timing says about the chunks of a buffer.
struct ColorAudit {
  std::uint64_t chunk_bytes = 0;               // timing gives each chunk one colour
  std::vector<std::uint64_t> chunks_of_color;  // by colour of the pool
  std::uint64_t outside = 0;                   // chunks with a colour that the share does not have
  std::uint64_t unclear = 0;  // chunks whose samples contradict each other each time
  [[nodiscard]] std::uint64_t chunks() const;
  // No chunk outside, at most one in a hundred unclear.
  [[nodiscard]] bool holds() const { return outside == 0 && unclear * 100 <= chunks(); }
};

struct SharePiece {
  const PageArena& arena;
  const ShareColors& share;
  color::Extent extent;
};

class PoolColors {
 public:
  virtual ~PoolColors() = default;

  [[nodiscard]] virtual std::uint32_t count() const = 0;
  // Bytes of a colour that follow each other at consecutive addresses.
  [[nodiscard]] virtual std::uint64_t run_bytes() const = 0;
  // How they were found, in words.
  [[nodiscard]] virtual std::string account() const = 0;
  // The table of the laws, the same for all shares; empty: they have none.
  [[nodiscard]] virtual std::span<const std::byte> table() const { return {}; }
  // What was measured of remainders, for tests and benchmarks; nullptr: the colours are others.
  [[nodiscard]] virtual const RemainderColors* remainders() const { return nullptr; }

  // The law of some of the colours. invalid_input if no law serves them together.
  [[nodiscard]] virtual Result<ShareColors> share(const PageArena& arena,
                                                  const color::ColorSet& colors) = 0;
  // Copies that wait until they are done.
  [[nodiscard]] virtual Result<void> upload(const SharePiece& to, const void* source) const = 0;
  [[nodiscard]] virtual Result<void> download(const SharePiece& from, void* target) const = 0;
  // ColoredBuffer::audit() of a piece that should lie in `wanted`.
  [[nodiscard]] virtual Result<ColorAudit> audit(const SharePiece& piece,
                                                 const color::ColorSet& wanted) const = 0;
};

// Finds by timing the colours of an arena that holds zeros, arranges the pages that one law serves
// and gives the others back to the driver. check_failed if the card is not as `scheme` says.
[[nodiscard]] Result<std::unique_ptr<PoolColors>> find_colors(const CardPointer& card,
                                                              const color::ColorScheme& scheme,
                                                              PageArena& arena);
// Parities on pages whose constants (of the colouring) are known: those are kept that find_colors()
// would keep. They cannot be audited.
[[nodiscard]] Result<std::unique_ptr<PoolColors>> given_parities(
    PageArena& arena, color::Coloring coloring, std::span<const std::uint32_t> constants);

// What one part of the colours looks like: the masks that decide whether a byte belongs to it and
// the value they must have.
struct ColorShare {
  color::Coloring coloring;
  std::uint32_t color = 0;
};

// `colors` is counted in the colours of `coloring`. It must be a power of two of them that differ
// by a linear space, as halves, quarters and single colours do; other sets have no closed form and
// are refused with the sets that would be right.
[[nodiscard]] Result<ColorShare> share_of_colors(const color::Coloring& coloring,
                                                 const color::ColorSet& colors);

}  // namespace demarc::cuda
