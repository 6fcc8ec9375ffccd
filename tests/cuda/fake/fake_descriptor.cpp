// The descriptor of a launch, as the launch callback sees it: masks, grids, clusters, chains of
// graphs.
#include <algorithm>
#include <cstring>

#include "fake_launch.hpp"

namespace demarc::fake {
namespace {

void set_word(Descriptor& descriptor, std::size_t offset, std::uint32_t word) {
  std::memcpy(descriptor.data() + offset, &word, sizeof word);
}

std::uint32_t word_at(const Descriptor& descriptor, std::size_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, descriptor.data() + offset, sizeof word);
  return word;
}

// Where words lie; 0: there is none. `type` has the bit of launches in clusters, too.
struct Layout {
  std::size_t version, words, count, type, grid, cluster, domain;
};
constexpr std::size_t no_type = 384;

Layout layout_of(std::uint8_t version) {
  if (version >= 0x50) return {58, 280, 4, 16, 156, 256, 76};
  if (version >= 0x40) return {72, 304, 4, 0, 128, 268, 140};
  return {72, 84, 2, no_type, 128, 0, 0};
}

bool mask_set(const Layout& layout, const Descriptor& descriptor) {
  bool any = false;
  for (std::size_t i = 0; i < layout.count; ++i) {
    any |= word_at(descriptor, layout.words + 4 * i) != 0;
  }
  return any;
}

}  // namespace

Descriptor build(const FakeConfig& config, const FakeLaunch& launch) {
  Descriptor descriptor{};
  const Layout layout = layout_of(config.descriptor_version);
  descriptor[layout.version] = config.descriptor_version;
  if (config.kernels_launch && config.descriptor_version == 0x40) set_word(descriptor, 40, 0x13);
  const std::uint32_t divisor = std::max(launch.cluster, 1U);
  set_word(descriptor, layout.grid, launch.grid[0] / divisor);
  set_word(descriptor, layout.grid + 4, launch.grid[1]);
  set_word(descriptor, layout.grid + 8, launch.grid[2]);
  if (launch.cluster != 0 && layout.cluster != 0) {
    set_word(descriptor, layout.cluster, 0x10100 | launch.cluster);
    set_word(descriptor, layout.type, 0x00800000);
  }
  if (layout.domain != 0 && !config.hides_domains) {
    set_word(descriptor, layout.domain, 0x80010000 | launch.domain << 28);
  }
  for (std::size_t i = 0; i < layout.count; ++i) {
    set_word(descriptor, layout.words + 4 * i, config.stale_mask[i]);
  }
  if (config.stale_enabled) set_word(descriptor, 0, word_at(descriptor, 0) | 0x80000000U);
  if (launch.stream_masked) {
    for (std::size_t i = 0; i < layout.count; ++i) {
      set_word(descriptor, layout.words + 4 * i, launch.stream_mask[i]);
    }
    if (layout.type != no_type) {
      set_word(descriptor, layout.type, word_at(descriptor, layout.type) | 0x80000000U);
    }
  }
  return descriptor;
}

std::uint32_t domain_of(const FakeConfig& config, const Descriptor& descriptor) {
  const std::size_t at = layout_of(config.descriptor_version).domain;
  return at == 0 ? 0 : word_at(descriptor, at) >> 28 & 3U;
}

// Nodes of a graph all have the bit of kernels that launch kernels. What tells these apart is whose
// count they await: their own, where others await the next node's, and the last none.
void chain_nodes(const FakeConfig& config, std::vector<Descriptor>& nodes) {
  if (config.descriptor_version != 0x40) return;
  constexpr std::uint32_t first_count = 0xfe680424;
  constexpr std::uint32_t count_bytes = 28;
  std::uint32_t count = first_count;
  for (std::size_t n = 0; n < nodes.size(); ++n, count += count_bytes) {
    const std::uint32_t next = n + 1 == nodes.size() ? 0 : count + count_bytes;
    set_word(nodes[n], 40, word_at(nodes[n], 40) | 0x10);
    set_word(nodes[n], 192, count);
    set_word(nodes[n], 232, config.kernels_launch ? count : next);
  }
}

std::vector<std::uint32_t> enabled_by(const FakeConfig& config, const Descriptor& descriptor,
                                      const FakeGreen* green) {
  const Layout layout = layout_of(config.descriptor_version);
  const bool on = layout.type == no_type || (word_at(descriptor, layout.type) >> 31) != 0;
  std::vector<std::uint32_t> tpcs;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    if (green != nullptr &&
        std::find(green->tpcs.begin(), green->tpcs.end(), t) == green->tpcs.end()) {
      continue;
    }
    const std::uint32_t bit = config.bit[(t + config.shift_masks) % config.tpcs];
    const bool set = bit / 32 < layout.count &&
                     ((word_at(descriptor, layout.words + 4 * (bit / 32)) >> (bit % 32)) & 1U) != 0;
    const bool masked = on && config.obey_masks && mask_set(layout, descriptor);
    const bool off = masked && set != config.invert_masks;
    const bool granted = on || config.client == 0 || ((config.client >> t) & 1U) != 0;
    if (!off && granted) tpcs.push_back(t);
  }
  return tpcs;
}

}  // namespace demarc::fake
