// Measures how long accesses to many pages take: walks of one thread from line to line, and random
// accesses of many SMs. TLBs, page walks and the links to other memory are measured by this.
#pragma once

#include <optional>
#include <span>

#include "demarc/driver/launch.hpp"
#include "demarc/driver/memory.hpp"

namespace demarc::cuda {

// Mapped memory whose accesses are timed. Its pages lie side by side.
struct PageRange {
  DevicePointer base = 0;
  std::uint64_t page_bytes = 0;  // a power of two, at least 4 KiB
  std::uint64_t pages = 0;
};

// Cycles of an SM per access. Each access waits for the one before it.
struct WalkTimes {
  double first_cycles = 0;  // cycles of the first walk around the ring
  double again_cycles = 0;  // cycles of the second, in the same launch
};

// Accesses at random places. As many are in flight as threads have room for.
struct PageTraffic {
  enum class Kind : std::uint32_t {
    read,    // access_bytes at a place that is a multiple of them
    write,   // the same
    page,    // a read of 4 bytes from the one line of a random page
    word,    // atomic additions to the first word
    atomic,  // atomic additions to random words
  };
  Kind kind = Kind::read;
  std::uint32_t access_bytes = 4;  // bytes of reads and writes: a power of two, 16 to 4096; else 4
  std::uint32_t sms = 1;
  std::chrono::microseconds lasts{4000};
};

class PageTimer {
 public:
  static Result<PageTimer> create(GpuPointer gpu);

  // Two walks around the ring of lines[i] (units of 128 bytes from range.base, each once), in this
  // order, from one SM. Overwrites the first 8 bytes of each line. `atomics`: additions of 0
  // instead of loads. `between`: traffic in the same range after the ring is made and before it is
  // walked, so that caches hold nothing of the ring; it may only read. invalid_input if a line lies
  // outside of the range, or if `between` writes. check_failed if a walk does not end where it
  // began. missing_capability if no block reaches the SM.
  [[nodiscard]] Result<WalkTimes> walk(const PageRange& range, std::span<const std::uint32_t> lines,
                                       bool atomics,
                                       const std::optional<PageTraffic>& between = {}) const;

  // Accesses per second of all SMs together, after a run that warms up. If it writes or adds, it
  // overwrites the range. invalid_input for sizes and numbers of SMs that do not exist.
  [[nodiscard]] Result<double> accesses_per_second(const PageRange& range,
                                                   const PageTraffic& traffic) const;

 private:
  PageTimer(Module module, Function ring, Function walk, Function traffic, Stream stream)
      : module_(std::move(module)),
        ring_(std::move(ring)),
        walk_(std::move(walk)),
        traffic_(std::move(traffic)),
        stream_(std::move(stream)) {}
  Module module_;
  Function ring_;
  Function walk_;
  Function traffic_;
  Stream stream_;
};

}  // namespace demarc::cuda
