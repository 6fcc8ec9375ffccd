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

struct Layout {
  std::size_t version, words, count, enable;
};

Layout layout_of(const FakeConfig& config) {
  if (config.descriptor_version >= 0x50) return {58, 280, 4, 16};
  if (config.descriptor_version >= 0x40) return {72, 304, 4, 0};
  return {72, 84, 2, 384};
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
  const Layout layout = layout_of(config);
  descriptor[layout.version] = config.descriptor_version;
  if (config.kernels_launch && config.descriptor_version == 0x40) set_word(descriptor, 40, 0x13);
  const std::uint32_t divisor = std::max(launch.cluster, 1U);
  set_word(descriptor, 128, launch.grid[0] / divisor);
  set_word(descriptor, 132, launch.grid[1]);
  set_word(descriptor, 136, launch.grid[2]);
  if (launch.cluster != 0 && config.descriptor_version == 0x40) {
    set_word(descriptor, 268, 0x10100 | launch.cluster);
    set_word(descriptor, 0, 0x00800000);
  }
  if (config.descriptor_version == 0x40 && !config.hides_domains) {
    set_word(descriptor, 140, 0x80000001 | launch.domain << 28);
  }
  for (std::size_t i = 0; i < layout.count; ++i) {
    set_word(descriptor, layout.words + 4 * i, config.stale_mask[i]);
  }
  if (config.stale_enabled) set_word(descriptor, 0, word_at(descriptor, 0) | 0x80000000U);
  if (launch.stream_masked) {
    for (std::size_t i = 0; i < layout.count; ++i) {
      set_word(descriptor, layout.words + 4 * i, launch.stream_mask[i]);
    }
    if (layout.enable < 384) {
      set_word(descriptor, layout.enable, word_at(descriptor, layout.enable) | 0x80000000U);
    }
  }
  return descriptor;
}

std::uint32_t domain_of(const Descriptor& descriptor) {
  return word_at(descriptor, 140) >> 28 & 3U;
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
  const Layout layout = layout_of(config);
  const bool on = layout.enable >= 384 || (word_at(descriptor, layout.enable) >> 31) != 0;
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
