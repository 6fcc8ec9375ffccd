// Colours that are runs of remainders (color/remainder_coloring.hpp), found on the pages of an
// arena.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/card/colored.cuh"
#include "demarc/card/memory_timer.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/card/pool_colors.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/color/color_set.hpp"
#include "demarc/color/law.hpp"
#include "demarc/color/remainder_model.hpp"
#include "demarc/device/topology.hpp"

namespace demarc::cuda {

struct RemainderColors {
  std::vector<gpu::SmIndex> sms;              // SMs that measure latencies
  color::RemainderModel model;                // its remainders are those of the arena's numbers
  color::RemainderColoring coloring;          // the arena's; window c is colour c
  std::uint32_t aside_constant = 0;           // constant of the page that the arena keeps aside
  std::vector<bool> aside_taken;              // its chunks that hold tables
  std::shared_ptr<const DeviceBuffer> table;  // on the card, of no colour: coloring.table()
  std::string account;                        // how it was found
};

// Finds by timing what each page of `arena` adds to the numbers of its chunks, arranges the pages
// in the order in which numbers go on from one to the next (the last is kept aside, others go back
// to the driver), and cuts the remainders into the colours of `scheme`: runs on one L2 side each.
// `topology` must know the side of each TPC. check_failed when the card chooses its slices in
// another way than `scheme` says.
[[nodiscard]] Result<RemainderColors> measure_remainders(const MemoryTimer& timer, PageArena& arena,
                                                         const gpu::Topology& topology,
                                                         const color::ColorScheme& scheme);

// The remainders of a set of colours that follow each other (bit c: colour c), with what lies
// between two of them.
[[nodiscard]] Result<color::RemainderColoring::Window> window_of_colors(
    const color::RemainderColoring& coloring, const color::ColorSet& colors);

// Puts the tables of a colour into the page that the arena keeps aside: patterns where all of their
// chunks are of the colour of `window`, places where those of as many pages as can be are, from the
// arena's first on.
[[nodiscard]] Result<PlacedTables> place_tables(RemainderColors& colors, const PageArena& arena,
                                                color::RemainderColoring::Window window);

// For device code: its byte 0 is `first`.
[[nodiscard]] colored_layout<remainders> layout_of_remainders(const color::RemainderSteps& steps,
                                                              const color::SharePlace& place,
                                                              color::LinearByte first);

}  // namespace demarc::cuda
