// The one view that the probe of address translation has of memory: pages of one size at one place,
// and how long accesses to them take. A real card (GpuTranslation) and planted hierarchies of TLBs
// (PlantedTranslation) implement it; the probe cannot tell which one it has.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/base/strong.hpp"

namespace demarc::probe {

using PageIndex = Index<struct PageIndexTag>;
using LineIndex = Index<struct LineIndexTag>;  // of 128 bytes, counted from the start of a page

inline constexpr std::uint64_t line_bytes = 128;

// Where memory lies, seen from the card that accesses it.
enum class MemoryPlace { local, peer, host };
[[nodiscard]] std::string_view name_of(MemoryPlace place);  // "local", "peer", "host"

// What to take and to map.
struct Mapping {
  MemoryPlace place = MemoryPlace::local;
  std::uint64_t piece_bytes = 0;  // asked of the driver at once; 0: pinned host memory
  std::uint64_t page_bytes = 0;   // distance between the pages of the probe; a power of two
};

// One access of a walk.
struct Visit {
  PageIndex page;
  LineIndex line;
};

enum class Access { load, atomic };

// What lies in caches when a walk begins.
enum class Before { whatever, evicted };

// Cycles of an SM per access. Each access waits for the one before it.
struct WalkCycles {
  double first = 0;  // of the first walk
  double again = 0;  // of the same walk once more, right behind it
};

// Accesses of many SMs at random places among the first `pages` pages.
struct Traffic {
  enum class Kind {
    read,
    write,
    page,    // reads of 4 bytes of the one line of each page
    word,    // atomic additions to one word
    atomic,  // atomic additions to random words
  };
  Kind kind = Kind::read;
  std::uint32_t access_bytes = 4;  // bytes of reads and writes; others have 4
  std::uint32_t sms = 1;
  std::uint64_t pages = 1;
};

class TimedPages {
 public:
  TimedPages() = default;
  TimedPages(const TimedPages&) = delete;
  TimedPages& operator=(const TimedPages&) = delete;
  virtual ~TimedPages() = default;

  [[nodiscard]] virtual std::uint64_t pages() const = 0;
  [[nodiscard]] virtual std::uint64_t page_bytes() const = 0;
  // Why no atomics may be made on this memory; empty: they may.
  [[nodiscard]] virtual const std::string& no_atomics() const = 0;

  // Goes through `visits` (each line once) in order, twice, from one SM.
  virtual Result<WalkCycles> walk(std::span<const Visit> visits, Access access, Before before) = 0;

  // Accesses per second of all SMs together.
  virtual Result<double> accesses_per_second(const Traffic& traffic) = 0;
};

struct TranslationFacts {
  std::string name;
  std::string peer;  // name of the card whose memory is the peer's; empty: none was asked for
  std::uint32_t sms = 0;
  std::uint64_t l2_bytes = 0;
  double sm_clock_hz = 0;  // the highest that the driver tells; 0: not known
};

class TimedTranslation {
 public:
  TimedTranslation() = default;
  TimedTranslation(const TimedTranslation&) = delete;
  TimedTranslation& operator=(const TimedTranslation&) = delete;
  virtual ~TimedTranslation() = default;

  [[nodiscard]] virtual const TranslationFacts& facts() const = 0;

  // Takes memory until the result is destroyed. missing_capability, with the reason, if the driver
  // maps no such pieces, if there is no peer, or if too little is free.
  virtual Result<std::unique_ptr<TimedPages>> map(const Mapping& mapping) = 0;
};

}  // namespace demarc::probe
