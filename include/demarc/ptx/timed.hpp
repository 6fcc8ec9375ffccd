// PTX in, PTX out: kernels that note on the GPU's own clock (%globaltimer, nanoseconds) when they
// begin and end, and that may be launched while the kernel before them still runs. A time taken
// this way is that of the kernel alone. The time between two events also includes what the host,
// the channel and the fetching of a launch need.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Where one launch of a timed kernel leaves its times. The first word is the nanosecond at which
// thread 0 of block 0 began. Words 8 ... 39 are the latest nanoseconds at which thread 0 of one of
// the last `timed_blocks` blocks left, by SM number modulo 32. The words are zeros at first. Times
// only grow, so nothing needs to be cleared between launches.
inline constexpr std::uint64_t stamp_bytes = 512;
inline constexpr std::uint32_t timed_blocks = 2112;

struct StampedTime {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};
// `words` are the stamp_bytes / 8 words of one launch.
[[nodiscard]] StampedTime stamped_time(std::span<const std::uint64_t> words);

struct TimedOptions {
  bool stamps = true;  // every kernel gets one parameter more, after its own: u64 stamp address
  // Programmatic dependent launch: at its beginning a kernel lets the next one be launched, and
  // waits until the one before has ended and its writes are seen. The launch must carry the
  // attribute programmatic stream serialization, on compute capability 9.0 or later.
  bool overlapped = false;
};

// `module` with every kernel changed. Errors name the line. `exit` in a device function is an error
// if stamps are asked for.
[[nodiscard]] Result<Module> rewrite_timed(const Module& module, const TimedOptions& options);

}  // namespace demarc::ptx
