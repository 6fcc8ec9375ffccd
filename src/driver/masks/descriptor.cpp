// Knows where the fields of a task descriptor lie, by version, and reads and writes them.
#include "demarc/driver/descriptor.hpp"

#include <cstring>

namespace demarc::cuda {
namespace {

constexpr std::uint32_t enable_bit = std::uint32_t{1} << 31;
constexpr std::uint32_t launcher_bit = std::uint32_t{1} << 4;
// For the word that has the enable bit: launched in clusters.
constexpr std::uint32_t cluster_bit = std::uint32_t{1} << 23;
constexpr std::uint32_t domain_shift = 28;
constexpr std::uint32_t domain_mask = 3;

// first, last: the version byte as read from descriptors, high digit = major.
constexpr DescriptorLayout known_layouts[] = {
    {"V01_06 to V03", 0x16, 0x3f, 72, 84, 2, -1, -1, -1, -1, -1, -1, -1},
    {"V04_00", 0x40, 0x40, 72, 304, 4, 0, 128, 268, 40, 192, 232, 140},
    {"V05_00", 0x50, 0x50, 58, 280, 4, 16, 156, 256, -1, -1, -1, 76},
};

std::uint8_t byte_at(const void* descriptor, std::size_t offset) {
  return static_cast<const std::uint8_t*>(descriptor)[offset];
}

std::uint32_t word_at(const void* descriptor, std::size_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, static_cast<const char*>(descriptor) + offset, sizeof word);
  return word;
}

void set_word(void* descriptor, std::size_t offset, std::uint32_t word) {
  std::memcpy(static_cast<char*>(descriptor) + offset, &word, sizeof word);
}

void set_mask_words(const DescriptorLayout& layout, void* descriptor, const HardwareMask& mask) {
  std::memcpy(static_cast<char*>(descriptor) + layout.word_offset, mask.disabled.data(),
              layout.words * sizeof(std::uint32_t));
}

// Blackwell (10.x, 12.x) is the first whose version byte moved, so the position to look at follows
// from the compute capability and a stray byte cannot be taken for a version.
bool applies_to(const DescriptorLayout& layout, gpu::ComputeCapability capability) {
  if (capability.major >= 10) return layout.first_version >= 0x50;
  if (capability.major == 9) return layout.first_version == 0x40;
  return layout.first_version < 0x40;
}

}  // namespace

bool version_matches(const DescriptorLayout& layout, const void* descriptor) {
  const std::uint8_t version = byte_at(descriptor, layout.version_offset);
  return version >= layout.first_version && version <= layout.last_version;
}

Result<const DescriptorLayout*> find_layout(const void* descriptor,
                                            gpu::ComputeCapability capability) {
  for (const DescriptorLayout& layout : known_layouts) {
    if (applies_to(layout, capability) && version_matches(layout, descriptor)) return &layout;
  }
  return missing_capability(
      "the task descriptors of this GPU (compute capability {}.{}, version bytes {:#04x} and "
      "{:#04x}) are not known to this version of Demarc; masks are refused. Use --mode green",
      capability.major, capability.minor, byte_at(descriptor, 72), byte_at(descriptor, 58));
}

bool mask_enabled(const DescriptorLayout& layout, const void* descriptor) {
  if (layout.enable_offset < 0) return read_mask(layout, descriptor).any();
  return (word_at(descriptor, static_cast<std::size_t>(layout.enable_offset)) & enable_bit) != 0;
}

HardwareMask read_mask(const DescriptorLayout& layout, const void* descriptor) {
  HardwareMask mask;
  std::memcpy(mask.disabled.data(), static_cast<const char*>(descriptor) + layout.word_offset,
              layout.words * sizeof(std::uint32_t));
  return mask;
}

void write_mask(const DescriptorLayout& layout, void* descriptor, const HardwareMask& mask) {
  set_mask_words(layout, descriptor, mask);
  if (layout.enable_offset < 0) return;
  const auto offset = static_cast<std::size_t>(layout.enable_offset);
  set_word(descriptor, offset, word_at(descriptor, offset) | enable_bit);
}

void clear_mask(const DescriptorLayout& layout, void* descriptor) {
  set_mask_words(layout, descriptor, {});
}

LaunchSize launch_size(const DescriptorLayout& layout, const void* descriptor) {
  LaunchSize size;
  if (layout.grid_offset < 0) return size;
  const auto grid = static_cast<std::size_t>(layout.grid_offset);
  constexpr std::uint32_t half_word = 0xffff;  // height and depth
  size.blocks = std::uint64_t{word_at(descriptor, grid)} *
                (word_at(descriptor, grid + 4) & half_word) *
                (word_at(descriptor, grid + 8) & half_word);
  if (layout.cluster_offset < 0) return size;
  const auto type = static_cast<std::size_t>(layout.enable_offset);
  if ((word_at(descriptor, type) & cluster_bit) == 0) return size;
  const auto cluster = static_cast<std::size_t>(layout.cluster_offset);
  size.cluster_blocks = std::uint32_t{byte_at(descriptor, cluster)} *
                        byte_at(descriptor, cluster + 1) * byte_at(descriptor, cluster + 2);
  if (size.cluster_blocks != 0) size.blocks *= size.cluster_blocks;
  return size;
}

std::optional<std::uint32_t> read_domain(const DescriptorLayout& layout, const void* descriptor) {
  if (layout.domain_offset < 0) return std::nullopt;
  return word_at(descriptor, static_cast<std::size_t>(layout.domain_offset)) >> domain_shift &
         domain_mask;
}

bool write_domain(const DescriptorLayout& layout, void* descriptor, std::uint32_t domain) {
  if (layout.domain_offset < 0) return false;
  const auto offset = static_cast<std::size_t>(layout.domain_offset);
  const std::uint32_t rest = word_at(descriptor, offset) & ~(domain_mask << domain_shift);
  set_word(descriptor, offset, rest | (domain & domain_mask) << domain_shift);
  return true;
}

bool tells_launchers(const DescriptorLayout& layout) {
  return layout.launcher_offset >= 0;
}

bool may_launch(const DescriptorLayout& layout, const void* descriptor) {
  if (!tells_launchers(layout)) return false;
  const auto word = [&](std::int16_t offset) {
    return word_at(descriptor, static_cast<std::size_t>(offset));
  };
  return (word(layout.launcher_offset) & launcher_bit) != 0 &&
         word(layout.counts_offset) == word(layout.awaits_offset);
}

bool fits(const DescriptorLayout& layout, const gpu::Topology& topology) {
  for (const gpu::Tpc& tpc : topology.tpcs) {
    if (tpc.bit.value_or(0) >= 32U * layout.words) return false;
  }
  return true;
}

Result<HardwareMask> to_hardware(const gpu::Topology& topology, const gpu::TpcSet& enabled) {
  if ((enabled & gpu::all_tpcs(topology)).empty()) {
    return invalid_input("a mask without any of the GPU's {} TPCs would hang every launch",
                         topology.tpc_count());
  }
  // Everything else is disabled over the full width: inside an MPS partition the driver shows fewer
  // TPCs than a launch can reach (seen on an H100), and bits that stand for nothing do no harm.
  HardwareMask mask;
  mask.disabled.fill(~std::uint32_t{0});
  for (const gpu::TpcIndex t : topology.tpcs.keys()) {
    const auto bit = topology.tpcs[t].bit;
    if (!bit || *bit >= 128) {
      return missing_capability("the hardware bit of TPC {} is not known; run demarc topo", t);
    }
    if (enabled.contains(t)) mask.disabled[*bit / 32] &= ~(std::uint32_t{1} << (*bit % 32));
  }
  return mask;
}

gpu::TpcSet enabled_tpcs(const gpu::Topology& topology, const HardwareMask& mask) {
  gpu::TpcSet set;
  for (const gpu::TpcIndex t : topology.tpcs.keys()) {
    const auto bit = topology.tpcs[t].bit;
    if (bit && !mask.disables(*bit)) set.insert(t);
  }
  return set;
}

}  // namespace demarc::cuda
