// What runs and the loops around them touch, as boxes: places of an arithmetic progression, or of a
// progression of progressions, at once. Places of buffers that overlap are numbered in a grid whose
// pitches are the strides of these progressions, so that each is a box of the grid.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "maps/places.hpp"

namespace demarc::locality {

inline constexpr std::size_t max_levels = 3;

// A place is lo + sum of digit * pitch over the levels; lo .. hi - 1 are digits.
struct Box {
  static constexpr std::uint8_t no_level = 0xff;
  std::array<std::uint64_t, max_levels> lo{0, 0, 0};
  std::array<std::uint64_t, max_levels> hi{1, 1, 1};
  std::uint64_t weight = 0;  // how often each place is touched
  std::uint32_t owner = 0;   // the block; or whatever a sweep tells apart
  // Positions first .. first + width - 1 of the run touch every place; or, with a level, the next
  // `width` positions with every digit of that level.
  std::uint32_t first = 0;
  std::uint32_t width = 1;
  std::uint16_t access = 0;
  std::uint8_t thread_level = no_level;
  bool reversed = false;
};

class BoxMaker {
 public:
  // Keeps a reference to `runs`.
  BoxMaker(const AccessRuns& runs, Granularity granularity);

  // Appends the boxes of a run.
  void make(const Run& run, std::vector<Box>& out);
  // Accesses of different clusters have no place in common.
  [[nodiscard]] std::size_t clusters() const { return grids_.size(); }
  [[nodiscard]] std::size_t cluster_of(std::uint16_t access) const { return cluster_[access]; }
  [[nodiscard]] std::size_t levels(std::size_t cluster) const { return grids_[cluster].levels; }

 private:
  struct Dimension {
    std::uint64_t stride = 1;  // places
    std::uint64_t count = 1;
    bool threads = false;
  };
  // The places of a run: lo + sum of index * stride.
  struct Progression {
    std::uint64_t lo = 0;
    std::array<Dimension, 2> dimensions;
    std::uint64_t trips = 1;  // in which a thread touches a place
    std::uint32_t first = 0;
    std::uint32_t width = 1;
    bool reversed = false;
  };
  struct Grid {
    std::uint64_t origin = ~std::uint64_t{0};
    std::size_t levels = 1;
    std::array<std::uint64_t, max_levels> pitch{1, 1, 1};
  };

  void choose_grids();
  // For the run in every trip of the loop.
  void progressions_of(const Run& run, Loop loop);
  void progressions_of_lanes(const Run& run, const Dimension& trips, std::uint64_t repeats);
  void place(const Grid& grid, const Progression& progression, Box box,
             std::vector<Box>& out) const;
  void split(const Grid& grid, std::uint64_t lo, std::array<std::uint64_t, max_levels> counts,
             std::size_t level, Box box, std::vector<Box>& out) const;

  const AccessRuns& runs_;
  std::vector<Places> places_;
  std::vector<std::size_t> cluster_;  // by access
  std::vector<Grid> grids_;
  std::vector<Progression> progressions_;  // of the run in hand
};

}  // namespace demarc::locality
