// Makes pools of coloured memory, divides them into shares and allocates in these.
#include "demarc/card/colored_memory.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace demarc::cuda {
namespace {

// Buffers begin at multiples of this, so that 16-byte vectors and whole sectors stay together.
constexpr std::uint64_t buffer_alignment = 256;

std::uint64_t rounded(std::uint64_t bytes) {
  return std::max(buffer_alignment, round_up(bytes, buffer_alignment));
}

Result<void> check_disjoint(std::span<const ShareRequest> shares) {
  for (std::size_t i = 0; i < shares.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      const color::ColorSet both = shares[i].colors.common(shares[before].colors);
      if (!both.empty()) return invalid_input("colours {} are in two shares", to_string(both));
    }
  }
  return {};
}

// The pages in the order of their constants; with one_region those of the most frequent one alone.
std::vector<std::uint32_t> order_of(std::span<const std::uint32_t> constants, PoolPages pages) {
  std::vector<std::uint32_t> order(constants.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return constants[a] < constants[b]; });
  if (pages == PoolPages::all) return order;
  std::map<std::uint32_t, std::size_t> count;
  for (const std::uint32_t constant : constants) ++count[constant];
  const auto most = std::max_element(
      count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::erase_if(order, [&](std::uint32_t page) { return constants[page] != most->first; });
  return order;
}

std::uint64_t pages_of(std::uint64_t bytes, std::uint64_t page_bytes) {
  return std::max<std::uint64_t>(bytes / page_bytes, 1);
}

}  // namespace

Result<ShareRequest> share_request(const partition::Partition& partition) {
  if (partition.colors.empty()) {
    return invalid_input("partition '{}' has no colours: its memory is not divided",
                         partition.name);
  }
  return ShareRequest{partition.colors, partition.byte_cap};
}

Result<std::shared_ptr<ColoredPool>> ColoredPool::create(GpuPointer gpu,
                                                         std::span<const std::uint64_t> masks,
                                                         std::uint64_t bytes,
                                                         std::span<const ShareRequest> shares,
                                                         PoolPages pages, Lending lending) {
  DEMARC_CHECK(gpu->check_whole());
  DEMARC_TRY(const std::size_t page_bytes, PhysicalMemory::granularity(*gpu));
  DEMARC_TRY(color::Coloring coloring, color::Coloring::make(masks, page_bytes));
  DEMARC_TRY(MemoryTimer timer, MemoryTimer::create(gpu));
  DEMARC_TRY(PageArena arena, PageArena::create(gpu, pages_of(bytes, page_bytes), lending));
  DEMARC_TRY(gpu::SliceModel model, measure_slices(timer, arena));
  DEMARC_TRY(const auto row_constants, measure_page_constants(timer, arena, model));
  std::vector<std::uint32_t> certain;  // pages; the others go back to the driver
  std::vector<std::uint32_t> constants;
  for (std::uint32_t page = 0; page < row_constants.size(); ++page) {
    if (!row_constants[page]) continue;
    DEMARC_TRY(const std::uint32_t own,
               coloring.constant_from_rows(model.masks, *row_constants[page]));
    certain.push_back(page);
    constants.push_back(own);
  }
  DEMARC_CHECK(arena.arrange(certain));
  DEMARC_TRY(auto pool, adopt(std::move(arena), std::move(coloring), constants, shares, pages));
  pool->pages_measured_ = row_constants.size();
  pool->timer_.emplace(std::move(timer));
  pool->model_.emplace(std::move(model));
  return pool;
}

Result<std::shared_ptr<ColoredPool>> ColoredPool::adopt(PageArena arena, color::Coloring coloring,
                                                        std::span<const std::uint32_t> constants,
                                                        std::span<const ShareRequest> shares,
                                                        PoolPages pages) {
  if (constants.size() != arena.pages()) {
    return invalid_input("{} page constants were given for an arena of {} pages", constants.size(),
                         arena.pages());
  }
  DEMARC_CHECK(check_disjoint(shares));
  const std::vector<std::uint32_t> order = order_of(constants, pages);
  std::vector<std::uint32_t> sorted;
  sorted.reserve(order.size());
  for (const auto page : order) sorted.push_back(constants[page]);
  DEMARC_CHECK(arena.arrange(order));

  std::shared_ptr<ColoredPool> pool(
      new ColoredPool(std::move(arena), std::move(coloring), std::move(sorted)));
  pool->pages_measured_ = constants.size();
  const std::uint64_t page_bytes = pool->arena_.page_bytes();
  for (std::size_t i = 0; i < pool->constants_.size(); ++i) {
    if (pool->regions_.empty() || pool->regions_.back().constant != pool->constants_[i]) {
      pool->regions_.push_back({pool->constants_[i], i * page_bytes, 0});
    }
    pool->regions_.back().bytes += page_bytes;
  }
  for (const auto& request : shares) {
    DEMARC_TRY(const ColorShare share, share_of_colors(pool->coloring_, request.colors));
    std::vector<ShareColors> colors;
    std::vector<std::uint64_t> linear;
    for (const auto& region : pool->regions_) {
      // As seen from the start of the region: its pages' constant is in the parities.
      DEMARC_TRY(const std::uint32_t constant,
                 share.coloring.constant_from_rows(pool->coloring_.masks(), region.constant));
      const auto masks = share.coloring.masks();
      const auto law =
          color::make_law(color::Parities{{masks.begin(), masks.end()}, share.color ^ constant});
      const DevicePointer begin = pool->arena_.address() + region.offset;
      colors.push_back({law, {.arena = begin, .window = *law->window(begin)}});
      linear.push_back(region.bytes / share.coloring.colors());
    }
    pool->add_share(request, std::move(colors), linear);
  }
  return pool;
}

Result<std::shared_ptr<ColoredPool>> ColoredPool::create(const CardPointer& card,
                                                         const color::ColorScheme& scheme,
                                                         std::uint64_t bytes,
                                                         std::span<const ShareRequest> shares,
                                                         PoolPages pages, Lending lending) {
  const GpuPointer& gpu = card->gpu();
  if (!scheme.remainders) return create(gpu, scheme.masks, bytes, shares, pages, lending);
  DEMARC_CHECK(check_disjoint(shares));
  DEMARC_TRY(const std::size_t page_bytes, PhysicalMemory::granularity(*gpu));
  DEMARC_TRY(MemoryTimer timer, MemoryTimer::create(gpu));
  DEMARC_TRY(ColoredCopier copier, ColoredCopier::create(gpu));
  DEMARC_TRY(PageArena arena, PageArena::create(gpu, pages_of(bytes, page_bytes), lending));
  DEMARC_TRY(RemainderColors colors, measure_remainders(timer, arena, card->topology(), scheme));
  std::shared_ptr<ColoredPool> pool(new ColoredPool(std::move(arena), {}, {}));
  pool->regions_.emplace_back();  // from the start of the arena on
  for (const auto& request : shares) {
    DEMARC_TRY(const auto window, window_of_colors(colors.coloring, request.colors));
    DEMARC_TRY(auto coloring, colors.coloring.with_windows({window}));
    const std::uint64_t linear = coloring.color_bytes(0);
    DEMARC_TRY(const color::RemainderSteps steps, coloring.steps(0));
    const auto law = color::make_law(steps);
    DEMARC_TRY(const PlacedTables placed, place_tables(colors, pool->arena_, window));
    const DevicePointer begin = pool->arena_.address();
    const DevicePointer aside = pool->arena_.aside();
    const DevicePointer table = colors.table->address();
    const color::Place place{
        .arena = begin,
        .window = begin,
        .patterns = placed.patterns ? aside + *placed.patterns : table,
        .places = placed.places ? aside + *placed.places : table + law->table_parts()->places_at};
    pool->add_share(request, {{law, place, placed}}, std::span(&linear, 1));
  }
  pool->table_ = colors.coloring.table();
  pool->remainders_.emplace(std::move(colors));
  pool->copier_.emplace(std::move(copier));
  pool->timer_.emplace(std::move(timer));
  return pool;
}

void ColoredPool::add_share(const ShareRequest& request, std::vector<ShareColors> colors,
                            std::span<const std::uint64_t> linear) {
  Share share;
  share.colors = std::move(colors);
  share.byte_cap = request.byte_cap;
  share.color_set = request.colors;
  for (const std::uint64_t bytes : linear) {
    share.free.emplace_back(0, bytes);
    share.usage.capacity_bytes += bytes;
  }
  if (share.byte_cap != 0) {
    share.usage.capacity_bytes = std::min(share.usage.capacity_bytes, share.byte_cap);
  }
  shares_.push_back(std::move(share));
}

std::uint32_t ColoredPool::colors() const {
  return remainders_ ? remainders_->coloring.colors() : coloring_.colors();
}

Result<ShareColors> ColoredPool::only_region(std::size_t share) const {
  if (regions_.size() != 1) {
    return invalid_input("the pool has {} regions of different constants, not one",
                         regions_.size());
  }
  return shares_.at(share).colors.front();
}

std::string ColoredPool::account() const {
  if (remainders_) return remainders_->account;
  return fmt::format("{} pages measured, {} kept, of {} constant{}", pages_measured_,
                     constants_.size(), regions_.size(), regions_.size() == 1 ? "" : "s");
}

std::uint64_t ColoredPool::run_bytes() const {
  return remainders_ ? std::uint64_t{1} << remainders_->coloring.hash().chunk_shift
                     : coloring_.chunk_bytes();
}

Result<ColoredBuffer> ColoredPool::allocate(std::size_t share_index, std::uint64_t bytes) {
  if (share_index >= shares_.size()) {
    return invalid_input("share {}: the pool has {}", share_index, shares_.size());
  }
  Share& share = shares_[share_index];
  const std::uint64_t wanted = rounded(bytes);
  const std::uint64_t in_use = share.usage.used_bytes + share.usage.wasted_bytes;
  if (share.byte_cap != 0 && wanted > share.byte_cap - in_use) {
    return missing_capability(
        "{} bytes of coloured memory: the partition may use {} bytes and uses {}", bytes,
        share.byte_cap, in_use);
  }
  for (std::uint32_t r = 0; r < regions_.size(); ++r) {
    const auto first = share.free[r].take(wanted);
    if (!first) continue;
    share.usage.used_bytes += bytes;
    share.usage.wasted_bytes += wanted - bytes;
    return ColoredBuffer(shared_from_this(), share_index, share.colors[r], *first, bytes, r);
  }
  return missing_capability("{} bytes of coloured memory: the largest free run of this share is {}",
                            bytes, share.largest_free());
}

std::uint64_t ColoredPool::Share::largest_free() const {
  std::uint64_t largest = 0;
  for (const FreeRanges& ranges : free) largest = std::max(largest, ranges.longest());
  if (byte_cap == 0) return largest;
  return std::min(largest, byte_cap - usage.used_bytes - usage.wasted_bytes);
}

ColoredUsage ColoredPool::usage(std::size_t share) const {
  ColoredUsage usage = shares_.at(share).usage;
  usage.largest_free_bytes = shares_[share].largest_free();
  return usage;
}

void ColoredPool::release(std::size_t share_index, std::uint32_t region, std::uint64_t first,
                          std::uint64_t bytes) {
  Share& share = shares_[share_index];
  const std::uint64_t size = rounded(bytes);
  share.usage.used_bytes -= bytes;
  share.usage.wasted_bytes -= size - bytes;
  share.free[region].put(first, first + size);
}

}  // namespace demarc::cuda
