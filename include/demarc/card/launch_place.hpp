// The stream and the colour in which neighbours disturb launches least. What a launch needs has no
// colour: one part lies on one L2 side, at another place for each stream (its channel), and the
// rest shares its way with some slices of the L2. On an H200 an empty launch takes 1.5 us. It takes
// 1.8 us beside reads of one colour and 2.5 us beside the other; the stream decides which is which.
// Stores to one of the two colours disturb every stream more (docs/measurements/launches.md). So a
// program that launches often chooses both together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "demarc/card/colored_memory.hpp"
#include "demarc/device/tpc_set.hpp"

namespace demarc::cuda {

// Times launches of a kernel of one block that does nothing, as fast as the card starts them.
class LaunchTimer {
 public:
  static Result<LaunchTimer> create(CardPointer card);
  // The time from one launch to the next: the median of three batches of a hundred. The host hands
  // them in while a kernel of a millisecond holds the stream, so the host's speed does not matter.
  [[nodiscard]] Result<double> microseconds(const Stream& stream) const;

 private:
  LaunchTimer(CardPointer card, DeviceBuffer counts, Event begin, Event end)
      : card_(std::move(card)),
        counts_(std::move(counts)),
        begin_(std::move(begin)),
        end_(std::move(end)) {}
  CardPointer card_;
  DeviceBuffer counts_;
  Event begin_;
  Event end_;
};

struct LaunchPlace {
  std::size_t stream = 0;  // index of the stream to launch into
  std::uint32_t share = 0;
};

// Microseconds of an empty launch.
struct LaunchTimes {
  std::vector<double> alone;                // [stream]
  std::vector<std::vector<double>> beside;  // [stream][share]: mean beside kinds of traffic to it

  // The stream and the share, whose others disturb the stream's launches least; `own_share` when
  // that is given already. Of places that differ by less than a hundredth, the first.
  [[nodiscard]] LaunchPlace quietest(std::optional<std::uint32_t> own_share = {}) const;
  // Mean time of a launch from there while the other shares are in use.
  [[nodiscard]] double beside_others(const LaunchPlace& place) const;
};

// Times launches into each of the streams while the SMs outside of `own`, or, where that is the
// whole card, all SMs, read and write each share of the pool. Takes some milliseconds per stream
// and share, during which nothing else may run on the card, and some of the pool's free memory,
// which it gives back: missing_capability when a share has none.
[[nodiscard]] Result<LaunchTimes> time_launches(const CardPointer& card, ColoredPool& pool,
                                                std::span<const Stream* const> streams,
                                                const gpu::TpcSet& own);

}  // namespace demarc::cuda
