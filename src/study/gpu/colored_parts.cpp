// Gives coloured parts of a study their memory, and the victim its stream.
#include "gpu/colored_parts.hpp"

#include <fmt/format.h>

#include "demarc/card/launch_place.hpp"
#include "gpu/colored_memory.hpp"
#include "part_colors.hpp"

namespace demarc::study {
namespace {

// Streams that a victim chooses from: as many as the driver has channels for by default.
constexpr std::size_t victim_streams = 8;

}  // namespace

// Masks that were given are taken as they are; else what the card's description says.
Result<color::ColorScheme> ColoredParts::scheme_for(const cuda::Gpu& gpu,
                                                    std::uint32_t parts) const {
  if (!options_.masks.empty()) return color::scheme_of_masks(options_.masks);
  DEMARC_TRY(const auto device, gpu::describe_card(gpu.name(), options_.description));
  return color::color_scheme(device, parts);
}

std::uint64_t ColoredParts::pages_to_take(const color::ColorScheme& scheme,
                                          std::uint32_t parts) const {
  if (options_.arena_pages != 0) return options_.arena_pages;
  return std::uint64_t{options_.arena_pages_a_part} * parts * scheme.pages_per_kept_page() / 2;
}

Result<std::uint64_t> ColoredParts::bytes_of_part(const cuda::Gpu& gpu, std::uint32_t parts) const {
  DEMARC_TRY(const color::ColorScheme scheme, scheme_for(gpu, parts));
  return pages_to_take(scheme, parts) * arena_page_bytes / parts / scheme.pages_per_kept_page();
}

// Share c is colour c. Of the pages of a pool of remainders nearly every one can be used, of others
// those of one constant.
Result<void> ColoredParts::fill(const cuda::CardPointer& card, std::uint32_t parts) {
  DEMARC_TRY(const color::ColorScheme scheme, scheme_for(*card->gpu(), parts));
  std::vector<cuda::ShareRequest> shares;
  for (std::uint32_t c = 0; c < scheme.colors; ++c) {
    shares.push_back({color::ColorSet::run(c, 1, scheme.colors), 0});
  }
  const std::uint64_t pages = pages_to_take(scheme, parts);
  DEMARC_TRY(pool_, cuda::ColoredPool::create(card, scheme, pages * arena_page_bytes, shares));
  return {};
}

// As --colors says; else the victim, part 0, has the quiet one and the others those that are left.
Result<std::vector<std::uint32_t>> ColoredParts::colors_of(std::uint32_t parts) const {
  std::vector<std::uint32_t> chosen = options_.colors;
  if (chosen.empty() && quiet_color_) {
    chosen.push_back(*quiet_color_);
    for (std::uint32_t color = 0; color < pool_->colors().count(); ++color) {
      if (color != *quiet_color_) chosen.push_back(color);
    }
  }
  return colors_of_parts(pool_->colors().count(), parts, chosen);
}

Result<ColoredParts::Victim> ColoredParts::open_victim(
    const cuda::CardPointer& card, cuda::Backend& back_end,
    const std::vector<partition::Partition>& partitions) {
  std::vector<std::unique_ptr<cuda::PartitionStream>> lanes(victim_streams);
  std::vector<const cuda::Stream*> streams;
  for (auto& lane : lanes) {
    DEMARC_TRY(lane, back_end.open(partitions.front(), options_.victim_priority));
    streams.push_back(&lane->stream());
  }
  DEMARC_TRY(const cuda::LaunchTimes times,
             cuda::time_launches(card, *pool_, streams, lanes.front()->tpcs()));
  if (options_.colors.empty() && !quiet_color_) quiet_color_ = times.quietest().share;
  DEMARC_TRY(const auto colors, colors_of(static_cast<std::uint32_t>(partitions.size())));
  const cuda::LaunchPlace place = times.quietest(colors.front());
  std::string of_parts;
  for (const std::uint32_t color : colors) of_parts += fmt::format(" {},", color);
  of_parts.back() = ';';
  return Victim{std::move(lanes[place.stream]),
                fmt::format("the parts have the colours{} an empty launch takes {:.2f} us, and "
                            "{:.2f} us next to traffic of the others' colours",
                            of_parts, times.alone[place.stream], times.beside_others(place))};
}

Result<std::shared_ptr<MemorySource>> ColoredParts::memory_of(std::uint32_t part,
                                                              std::uint32_t parts) const {
  DEMARC_TRY(const auto colors, colors_of(parts));
  return make_colored_memory(pool_, colors[part]);
}

}  // namespace demarc::study
