// An application as access streams. It has kernels of work-groups of waves. Each wave is a list of
// memory instructions. An instruction is a pure function of (kernel, work-group, wave, index), so
// nothing is stored. To add an application, write src/sim/translation/apps/<name>.cpp with a class,
// its settings and a function that tells of both, and name that function in apps/registry.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sim/translation/places.hpp"
#include "demarc/sim/translation/settings.hpp"

namespace demarc::sim::translation {

inline constexpr std::uint32_t wave_lanes = 64;

// A bit for each sector of 32 bytes, of a line or of several side by side.
using Sectors = std::uint32_t;
inline constexpr Sectors whole_line = 3;

// One memory instruction of a wave: the distinct lines it touches, in lane order.
struct MemoryInstruction {
  bool store = false;
  bool partial = false;   // a store that fills sectors of 32 bytes in part
  bool wait = false;      // earlier loads of the wave must have returned before this one is issued
  bool barrier = false;   // all waves of the work-group must have come this far
  std::uint32_t alu = 0;  // vector instructions before it
  std::uint32_t shared_rows = 0;  // rows of shared memory that they access
  std::uint32_t lines = 0;
  std::array<LineNumber, wave_lanes> line{};
  // Per half of a line: a bit for each line of which it is not touched.
  std::array<std::uint64_t, 2> untouched{};

  // The touched sectors of 32 bytes of a line, its first in bit 0.
  [[nodiscard]] Sectors sectors(std::uint32_t i) const {
    return static_cast<Sectors>(~(untouched[0] >> i & 1U) & 1U) |
           static_cast<Sectors>((~(untouched[1] >> i) & 1U) << 1U);
  }
  // Ready for the next instruction; what `line` holds does not matter.
  void clear() {
    store = partial = wait = barrier = false;
    untouched = {};
    alu = shared_rows = lines = 0;
  }
  // Adds a line unless it is the one added last.
  void touch(LineNumber number) {
    if (lines > 0 && line[lines - 1] == number) return;
    line[lines++] = number;
  }
  void touch(Address address) { touch(line_of(address)); }
  // All lines of [first, first + bytes).
  void touch_range(Address first, std::uint64_t bytes) {
    const LineNumber last = line_of(first + (bytes - 1));
    for (LineNumber at = line_of(first); at <= last; ++at) touch(at);
  }
};

struct KernelShape {
  std::uint32_t groups_x = 1;  // dimension 0, fastest in the flattened id
  std::uint32_t groups_y = 1;
  std::uint32_t waves_per_group = 1;
  std::uint32_t vgprs = 8;      // per lane
  std::uint32_t sgprs = 16;     // per wave
  std::uint32_t lds_bytes = 0;  // dynamic, per work-group
  [[nodiscard]] std::uint32_t groups() const { return groups_x * groups_y; }
};

// A place in the stream.
struct WavePosition {
  std::uint32_t kernel = 0;
  std::uint32_t group = 0;  // flattened
  std::uint32_t wave = 0;   // within the group
  std::uint32_t index = 0;  // index of the instruction
};

class Application {
 public:
  virtual ~Application() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;  // of all arrays; the address space used
  [[nodiscard]] virtual Split native_split() const = 0;
  [[nodiscard]] virtual std::span<const KernelShape> kernels() const = 0;
  // For an application that was made from a launch or a stream: where its pages begin there, in
  // order.
  [[nodiscard]] virtual std::span<const Address> page_addresses() const { return {}; }
  // False past the last instruction of the wave.
  [[nodiscard]] virtual bool instruction(const WavePosition& at, MemoryInstruction& out) const = 0;
};

struct ApplicationInfo {
  std::string_view name;     // "KM"
  std::string_view meaning;  // "KMeans (Hetero-Mark)"
  std::unique_ptr<Application> (*make)(const Settings& settings);
  std::vector<SettingInfo> settings;  // its own
};
[[nodiscard]] std::span<const ApplicationInfo> application_table();
[[nodiscard]] Result<std::unique_ptr<Application>> make_application(std::string_view name,
                                                                    const Settings& settings);

}  // namespace demarc::sim::translation
