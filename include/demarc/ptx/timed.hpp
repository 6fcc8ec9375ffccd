// PTX in, PTX out: kernels that note on the GPU's own clock (%globaltimer, nanoseconds) when they
// begin and end, and that may be launched while the kernel before them still runs. A time taken
// this way is the kernel's alone: what the host, the channel and the fetching of a launch need is
// not in it, as it is in the time between two events.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Where one launch of a timed kernel leaves its times: first word, the nanosecond at which thread 0
// of block 0 began; words 8 ... 39, the latest nanoseconds at which thread 0 of one of the last
// `timed_blocks` blocks left, by SM number modulo 32. Times only grow, so that nothing needs
// clearing between launches; zeros at first.
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
  // Programmatic dependent launch: a kernel lets the next one be launched at its own beginning and
  // waits there until the one before has ended and its writes are seen. The launch must carry the
  // attribute programmatic stream serialization, on compute capability 9.0 or later.
  bool overlapped = false;
};

// `module` with every kernel changed. Errors name the line: `exit` in a device function
// when stamps are asked for.
[[nodiscard]] Result<Module> rewrite_timed(const Module& module, const TimedOptions& options);

}  // namespace demarc::ptx
