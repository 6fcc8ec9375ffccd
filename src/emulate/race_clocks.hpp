// What comes before what among the warps of a block, beyond barriers of the whole block: vector
// clocks, moved on by releases, acquires, fences, named barriers and mbarriers.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace demarc::emulate {

// Moments are those of Block::epoch. A place is anything that one warp writes and another reads in
// order to be ordered: see the functions below.
class RaceClocks {
 public:
  // There are so many warps from the next clear() on.
  void use(std::uint32_t warps) { warps_ = warps; }
  [[nodiscard]] bool used() const { return warps_ != 0; }
  void clear();

  // Whether all that `other` had done at `moment` comes before what `warp` does now.
  [[nodiscard]] bool ordered(std::uint32_t warp, std::uint32_t other, std::uint64_t moment) const {
    return warp == other || moment <= now_[at(warp) + other];
  }

  void fence(std::uint32_t warp, std::uint64_t moment);
  // `warp` writes to a place. One that does not release hands on what its last fence covers. An
  // atomic keeps what was there before: chains of atomics go on.
  void write(std::uint32_t warp, std::uint64_t place, std::uint64_t moment, bool releases,
             bool atomic);
  // `warp` reads a place. What it gets there counts at once if it acquires, else from its next
  // fence on.
  void read(std::uint32_t warp, std::uint64_t place, bool acquires);
  void forget(std::uint64_t place) { written_.erase(place); }
  // What was written to one place is now at another one, and the first is empty.
  void move(std::uint64_t from, std::uint64_t to);

  // Strong accesses of a state space.
  [[nodiscard]] static std::uint64_t place_of(std::uint8_t space, std::uint64_t address) {
    return (std::uint64_t{space} << 60) ^ address;
  }
  [[nodiscard]] static std::uint64_t place_of_barrier(std::uint32_t id) { return id + 1; }
  // An mbarrier, by its word on the host: arrivals of this phase, and those of the last.
  [[nodiscard]] static std::uint64_t place_of_arrivals(const std::uint64_t* word) {
    return reinterpret_cast<std::uint64_t>(word);
  }
  [[nodiscard]] static std::uint64_t place_of_phase(const std::uint64_t* word) {
    return place_of_arrivals(word) + 1;
  }

 private:
  using Clock = std::vector<std::uint32_t>;  // by warp

  [[nodiscard]] std::size_t at(std::uint32_t warp) const { return std::size_t{warp} * warps_; }

  std::uint32_t warps_ = 0;
  // One clock of each warp.
  Clock now_;
  Clock fenced_;  // as it was at the last fence
  Clock seen_;    // what it has read without acquiring
  std::unordered_map<std::uint64_t, Clock> written_;
};

}  // namespace demarc::emulate
