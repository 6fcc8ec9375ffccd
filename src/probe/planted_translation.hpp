// Address translation whose TLBs, costs and links are known: what the probe has to find.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "demarc/base/random.hpp"
#include "demarc/probe/timed_pages.hpp"

namespace demarc::probe {

struct PlantedTlb {
  std::uint64_t entries = 0;
  std::uint64_t pages_per_entry = 1;
  std::uint64_t ways = 0;  // per set; 0: fully associative
  bool hashed = false;     // sets are picked by a hash of the page, not by its lowest bits
  bool random = false;     // replaces any page of the set, not the one used longest ago
  double miss_cycles = 0;
};

// Memory of one place.
struct PlantedPlace {
  bool there = false;
  std::uint64_t pages = 0;  // pages of 2 MiB
  double hit_cycles = 0;    // cycles of a line that the L2 on the way holds, translation known
  double cold_cycles = 0;   // cycles of a line that no cache holds
  std::string no_atomics;   // why there are none
  bool cached_here = true;  // lines of it are kept in the L2 of the card that reads
  double atomic_cycles = 0;
  std::vector<PlantedTlb> tlbs;
  double bytes_per_second = 0;
  double sm_bytes_per_second = 0;  // that one SM can move
  double packet_bytes = 0;         // carried along with each access
  double atomics_per_second = 0;
  double walks_per_second = 0;  // of pages beyond the last TLB
};

struct PlantedHierarchy {
  TranslationFacts facts;
  std::array<PlantedPlace, 3> places;  // by MemoryPlace
  std::uint64_t least_piece_bytes = std::uint64_t{2} << 20U;
  double noise_cycles = 0.3;  // noise of the mean of a walk, standard deviation
  double slice_cycles = 40;   // a line is at most so much nearer or further than the mean
  double rate_noise = 0.01;   // noise of a rate, relative
};

class PlantedTranslation final : public TimedTranslation {
 public:
  PlantedTranslation(PlantedHierarchy truth, std::uint64_t seed)
      : truth_(std::move(truth)), seed_(seed) {}
  [[nodiscard]] const TranslationFacts& facts() const override { return truth_.facts; }
  Result<std::unique_ptr<TimedPages>> map(const Mapping& mapping) override;

 private:
  PlantedHierarchy truth_;
  std::uint64_t seed_;
};

// By the name after "planted:": "h200" with figures like those of an H200 and a peer. invalid_input
// for other names, with those that there are.
[[nodiscard]] Result<PlantedHierarchy> planted_hierarchy(std::string_view name);

}  // namespace demarc::probe
