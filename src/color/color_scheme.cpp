// Chooses how a card's memory is divided into colours, by what was measured to isolate.
#include "demarc/color/color_scheme.hpp"

#include <algorithm>
#include <bit>

#include "demarc/base/gf2.hpp"
#include "demarc/color/coloring.hpp"
#include "demarc/color/remainder_order.hpp"

namespace demarc::color {
namespace {

constexpr std::uint64_t least_run_bytes = 512;

double worst_of(const gpu::MaskIsolation& mask, Traffic traffic) {
  if (traffic == Traffic::dram_reads) return mask.dram_read;
  return std::max({mask.dram_read, mask.dram_write, mask.l2_read, mask.l2_write});
}

// For one mask; nothing measured counts as not kept apart.
bool keeps_apart(std::span<const gpu::MaskIsolation> measured, std::uint64_t mask, Traffic traffic,
                 double most) {
  return std::any_of(measured.begin(), measured.end(), [&](const gpu::MaskIsolation& entry) {
    const double worst = worst_of(entry, traffic);
    return entry.mask == mask && worst > 0 && worst <= most;
  });
}

Result<ColorScheme> remainder_scheme(const gpu::Device& device, std::uint32_t colors) {
  const gpu::AddressMap& map = *device.address_map;
  if (map.module.rows.size() > 1) {
    return missing_capability(
        "{}: the description has remainders inside {} modules, but only those inside two modules "
        "make colours",
        device.name, map.module.count());
  }
  ColorScheme scheme;
  scheme.colors = colors;
  scheme.paths = static_cast<std::uint32_t>(map.remainder_runs.size());
  if (scheme.paths < colors) {
    return missing_capability(
        "{}: {} colours are not possible; only {} runs of remainders share no path", device.name,
        colors, scheme.paths);
  }
  if (auto possible = check_remainder_parts(colors, scheme.paths); !possible) {
    return missing_capability("{}: {}", device.name, possible.error().message);
  }
  const std::uint64_t half = map.module.empty() ? 0 : map.module.rows.front();
  DEMARC_TRY(scheme.remainders,
             remainder_hash(*map.stack, half, map.page_bytes, map.interleave_bytes));
  return scheme;
}

}  // namespace

std::vector<std::uint64_t> mask_sums(std::span<const std::uint64_t> basis) {
  std::vector<std::uint64_t> sums;
  for (std::size_t choice = 1; choice < (std::size_t{1} << basis.size()); ++choice) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < basis.size(); ++i) {
      if (((choice >> i) & 1U) != 0) sum ^= basis[i];
    }
    sums.push_back(sum);
  }
  return sums;
}

std::vector<std::uint64_t> isolating_masks(std::span<const gpu::MaskIsolation> measured,
                                           Traffic traffic, double most) {
  std::vector<gpu::MaskIsolation> best(measured.begin(), measured.end());
  std::stable_sort(best.begin(), best.end(), [](const auto& a, const auto& b) {
    return worst_of(a, Traffic::all) < worst_of(b, Traffic::all);
  });
  std::vector<std::uint64_t> basis;
  for (const gpu::MaskIsolation& entry : best) {
    auto larger = basis;
    larger.push_back(entry.mask);
    if (gf2_rank(larger) != larger.size()) continue;
    const auto sums = mask_sums(larger);
    if (std::all_of(sums.begin(), sums.end(), [&](std::uint64_t mask) {
          return keeps_apart(measured, mask, traffic, most);
        })) {
      basis = std::move(larger);
    }
  }
  return gpu::low_pivot_basis(basis);
}

Result<ColorScheme> color_scheme(const gpu::Device& device, std::uint32_t colors) {
  if (colors < 2 || colors > 64) {
    return invalid_input("{} colours are not possible; give 2 to 64", colors);
  }
  if (!device.address_map) {
    return missing_capability(
        "{}: the description has no address map, so the colours are not known; demarc probe memory "
        "-o FILE writes one",
        device.name);
  }
  const gpu::AddressMap& map = *device.address_map;
  const std::uint32_t asked = colors;
  colors = std::bit_ceil(colors);
  const auto wanted = static_cast<std::size_t>(std::countr_zero(colors));
  const auto isolating = isolating_masks(map.isolation, Traffic::all);
  if (isolating.empty() && map.stack && !map.remainder_runs.empty()) {
    return remainder_scheme(device, asked);
  }
  for (std::uint64_t run = map.page_bytes; run >= least_run_bytes; run /= 2) {
    auto masks = gpu::masks_at_granularity(isolating, run);
    if (masks.size() >= wanted) return ColorScheme{colors, std::move(masks), {}, 0};
  }
  return missing_capability(
      "{}: {} colours are not possible; its description has {} masks that keep reads, writes and "
      "L2 hits apart, and remainders {}",
      device.name, colors, isolating.size(),
      map.remainder_runs.empty() ? "were not found to" : "are not used beside masks");
}

Result<ColorScheme> scheme_of_masks(std::span<const std::uint64_t> masks) {
  DEMARC_TRY(const Coloring coloring, Coloring::make(masks, 0));
  return ColorScheme{coloring.colors(), {masks.begin(), masks.end()}, {}, 0};
}

Result<void> check_masks(const gpu::Device& device, std::span<const std::uint64_t> masks) {
  if (!device.address_map || device.address_map->isolation.empty()) return {};
  for (const std::uint64_t mask : mask_sums(masks)) {
    if (keeps_apart(device.address_map->isolation, mask, Traffic::all, max_isolated)) continue;
    return check_failed(
        "{}: its description says that the mask {:#x} does not keep reads, writes and L2 hits of "
        "two colours apart",
        device.name, mask);
  }
  return {};
}

Result<ColorSet> ColorScheme::colors_for(const ColorSet& asked) const {
  if (!asked.is_well_formed() || asked.of() >= colors || colors % asked.of() == 0) {
    return asked.counted_in(colors);
  }
  return ColorSet(asked.members(), colors);
}

Result<ptx::Translation> ColorScheme::translation(const ptx::Module& module,
                                                  std::uint32_t color) const {
  if (!remainders) return translation_of(Parities{masks, color});
  return translation_of(RemainderShape{remainders->chunk_shift, remainders->page_shift(),
                                       remainders->block_shift - remainders->chunk_shift},
                        module);
}

LawPtr ColorScheme::law_of_granules() const {
  if (!remainders) return make_law(Parities{masks, 0});
  return make_law(RemainderSteps{.chunk_shift = remainders->chunk_shift});
}

}  // namespace demarc::color
