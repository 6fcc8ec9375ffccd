// The TPC mask in the hardware's task descriptor (QMD, also TMD), as bytes: no GPU is touched here.
//
// Positions and versions: libsmctrl (RTAS 2023) and its later versions, and what NVIDIA publishes
// in open-gpu-doc (clcbc0qmd.h for V04_00, clcdc0qmd.h for V05_00: TPC_DISABLE_MASK, QMD_TYPE,
// GRID_*, GPC_CGA_*, SYNC_DOMAIN_ID). V04_00 was measured on an H100 and an H200, driver
// 580.159.04; V05_00 on no card. Any version not in the table is refused, because a mask written to
// the wrong place is silently ignored or worse.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/device/device.hpp"
#include "demarc/device/tpc_set.hpp"

namespace demarc::cuda {

// Hardware bit b (see gpu::Tpc::bit) is bit b % 32 of word b / 32; a set bit DISABLES the unit.
// Kept inside this room: everyone else speaks of enabled TPCs.
struct HardwareMask {
  std::array<std::uint32_t, 4> disabled{};

  [[nodiscard]] bool any() const {
    return (disabled[0] | disabled[1] | disabled[2] | disabled[3]) != 0;
  }
  // True for masks made by to_hardware(): they disable the highest bit, which no TPC of any card
  // seen has and which the driver, translating a stream mask, leaves alone. So a kept descriptor of
  // a graph tells whose mask it carries.
  [[nodiscard]] bool ours() const { return (disabled[3] >> 31) != 0; }
  [[nodiscard]] bool disables(std::uint32_t bit) const {
    return bit < 128 && ((disabled[bit / 32] >> (bit % 32)) & 1U) != 0;
  }
  // True when this mask disables everything that `other` disables.
  [[nodiscard]] bool covers(const HardwareMask& other) const { return (*this | other) == *this; }
  // Full width: nothing could run.
  [[nodiscard]] bool everything() const {
    return (disabled[0] & disabled[1] & disabled[2] & disabled[3]) == ~std::uint32_t{0};
  }
  // Leaves what both leave.
  friend HardwareMask operator|(const HardwareMask& a, const HardwareMask& b) {
    return {{a.disabled[0] | b.disabled[0], a.disabled[1] | b.disabled[1],
             a.disabled[2] | b.disabled[2], a.disabled[3] | b.disabled[3]}};
  }
  friend bool operator==(const HardwareMask&, const HardwareMask&) = default;
};

struct DescriptorLayout {
  const char* name;            // "V04_00"
  std::uint8_t first_version;  // inclusive range of the version byte
  std::uint8_t last_version;
  std::uint16_t version_offset;  // bytes from the start of the descriptor
  std::uint16_t word_offset;     // offset of the first mask word; the others follow
  std::uint8_t words;            // 2 or 4
  std::int16_t enable_offset;    // of the word that holds the enable bit 31; -1: there is none
  std::int16_t grid_offset;     // of a word and two half words, each at a word: blocks, or clusters
                                // where there are clusters
  std::int16_t cluster_offset;  // of three bytes: blocks of a cluster along x, y, z; -1: not known
  std::int16_t launcher_offset;  // of the word whose bit 4 is set for kernels that contain launches
                                 // of kernels (dynamic parallelism); -1: not known
  std::int16_t counts_offset;    // of the word that says where the end of the launch is counted
  std::int16_t awaits_offset;    // of the word that says whose end comes next; see may_launch()
  std::int16_t domain_offset;    // of the word whose bits 28 and 29 are the memory synchronisation
                                 // domain; -1: not known
};

struct LaunchSize {
  std::uint64_t blocks = 0;
  std::uint32_t cluster_blocks = 0;  // 0: no clusters, or not known
};
[[nodiscard]] LaunchSize launch_size(const DescriptorLayout& layout, const void* descriptor);
// The memory synchronisation domain of the launch; nothing where the version does not tell.
[[nodiscard]] std::optional<std::uint32_t> read_domain(const DescriptorLayout& layout,
                                                       const void* descriptor);
// False, and nothing is written, where the version does not tell. `domain` is 0 to 3.
[[nodiscard]] bool write_domain(const DescriptorLayout& layout, void* descriptor,
                                std::uint32_t domain);

// False when may_launch() is a guess.
[[nodiscard]] bool tells_launchers(const DescriptorLayout& layout);

// True when the kernel could launch kernels itself, which no mask would reach. Seen on an H100: the
// bit is set for every kernel with a launch in it, taken or not; clear for kernels with local
// memory, printf, malloc, clusters, cooperative or indirect calls. Seen on an H200: nodes of graphs
// have the bit all of them; there a kernel with launches in it awaits its own count, another node
// the next one's or, the last, none.
[[nodiscard]] bool may_launch(const DescriptorLayout& layout, const void* descriptor);

// The layout for descriptors of a compute capability whose version byte says so. `descriptor` must
// be readable for 80 bytes.
[[nodiscard]] Result<const DescriptorLayout*> find_layout(const void* descriptor,
                                                          gpu::ComputeCapability capability);
[[nodiscard]] bool version_matches(const DescriptorLayout& layout, const void* descriptor);

// True when the descriptor already carries a mask that the hardware will obey.
[[nodiscard]] bool mask_enabled(const DescriptorLayout& layout, const void* descriptor);
[[nodiscard]] HardwareMask read_mask(const DescriptorLayout& layout, const void* descriptor);
// Writes the mask and its enable bit. Bits from 32 * words on have no place: check with fits().
void write_mask(const DescriptorLayout& layout, void* descriptor, const HardwareMask& mask);
// Takes a mask of ours out again: nothing is disabled, the enable bit stays (harmless, seen).
void clear_mask(const DescriptorLayout& layout, void* descriptor);
// True when every TPC of the topology has its bit within the layout's words.
[[nodiscard]] bool fits(const DescriptorLayout& layout, const gpu::Topology& topology);

// Disables everything but the TPCs in `enabled`. Errors: a hardware bit is not known;
// no existing TPC would be left, so that launches would hang.
[[nodiscard]] Result<HardwareMask> to_hardware(const gpu::Topology& topology,
                                               const gpu::TpcSet& enabled);
// The TPCs of the topology that the mask leaves enabled.
[[nodiscard]] gpu::TpcSet enabled_tpcs(const gpu::Topology& topology, const HardwareMask& mask);

}  // namespace demarc::cuda
