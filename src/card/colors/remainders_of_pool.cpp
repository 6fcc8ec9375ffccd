// Colours of a pool that are runs of remainders: their laws read tables, and a kernel copies.
#include <algorithm>

#include "colors/chunk_audit.hpp"
#include "colors/measuring.hpp"
#include "colors/pool_kinds.hpp"
#include "demarc/card/colored_copy.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t max_samples_per_number = 4;

// How far a remainder lies behind the first of a run.
std::uint32_t behind(std::uint32_t remainder, std::uint32_t modulus,
                     const color::RemainderColoring::Window& window) {
  return (remainder + modulus - window.first) % modulus;
}

// What lies between two runs counts as the colour of the one before.
std::uint32_t color_of(std::uint32_t remainder, const color::RemainderColoring& coloring) {
  const auto after = [&](std::uint32_t color) {
    return behind(remainder, coloring.hash().modulus, coloring.window(color));
  };
  std::uint32_t nearest = 0;
  for (std::uint32_t color = 1; color < coloring.colors(); ++color) {
    if (after(color) < after(nearest)) nearest = color;
  }
  return nearest;
}

colored_layout<remainders> layout_of(const SharePiece& piece) {
  return layout_of_remainders(*piece.share.law->device_numbers().steps, piece.share.place,
                              piece.extent.first);
}

class RemainderPool final : public PoolColors {
 public:
  RemainderPool(RemainderColors found, ColoredCopier copier, MemoryTimer timer)
      : found_(std::move(found)),
        table_(found_.coloring.table()),
        copier_(std::move(copier)),
        timer_(std::move(timer)) {}

  [[nodiscard]] std::uint32_t count() const override { return found_.coloring.colors(); }
  [[nodiscard]] std::uint64_t run_bytes() const override {
    return std::uint64_t{1} << found_.coloring.hash().chunk_shift;
  }
  [[nodiscard]] std::string account() const override { return found_.account; }
  [[nodiscard]] std::span<const std::byte> table() const override { return table_; }
  [[nodiscard]] const RemainderColors* remainders() const override { return &found_; }

  [[nodiscard]] Result<ShareColors> share(const PageArena& arena,
                                          const color::ColorSet& colors) override {
    DEMARC_TRY(const auto window, window_of_colors(found_.coloring, colors));
    DEMARC_TRY(auto coloring, found_.coloring.with_windows({window}));
    DEMARC_TRY(const color::RemainderSteps steps, coloring.steps(0));
    const auto law = color::make_law(steps);
    DEMARC_TRY(const PlacedTables placed, place_tables(found_, arena, window));
    const color::DeviceAddress begin(arena.address());
    const color::DeviceAddress aside(arena.aside());
    const color::DeviceAddress table(found_.table->address());
    const color::SharePlace place{
        .arena = begin,
        .window = begin,
        .patterns = placed.patterns ? aside + *placed.patterns : table,
        .places = placed.places ? aside + *placed.places : table + law->table_parts()->places_at};
    return ShareColors{law, place, coloring.color_bytes(0), placed};
  }

  [[nodiscard]] Result<void> upload(const SharePiece& to, const void* source) const override {
    return copier_.upload(layout_of(to), source, to.extent.bytes);
  }
  [[nodiscard]] Result<void> download(const SharePiece& from, void* target) const override {
    return copier_.download(layout_of(from), target, from.extent.bytes);
  }

  // A chunk here is what has one number, 2 KiB on an H200.
  [[nodiscard]] Result<ColorAudit> audit(const SharePiece& piece,
                                         const color::ColorSet& wanted) const override {
    const color::RemainderHash& hash = found_.coloring.hash();
    DEMARC_TRY(const auto window, window_of_colors(found_.coloring, wanted));
    const std::uint64_t unit = hash.unit_bytes();
    const auto place = [&](color::LinearByte at) { return piece.share.law->position(at, table_); };
    const auto judge = [&](const MeasuredChunk& chunk, ColorAudit& audit) -> Result<bool> {
      const auto seen =
          color::find_number_remainders(found_.model, chunk.in_page, chunk.latencies, chunk.row);
      const auto inside = std::count_if(
          seen.remainders.begin(), seen.remainders.end(), [&](std::uint32_t remainder) {
            return behind(remainder, hash.modulus, window) < window.count;
          });
      const bool all = inside == std::ssize(seen.remainders);
      if (seen.agreement < least_audit_agreement || (inside != 0 && !all)) return false;
      ++audit.chunks_of_color[color_of(seen.remainders.front(), found_.coloring)];
      if (!all) ++audit.outside;
      return true;
    };
    const std::uint64_t samples = std::min(max_samples_per_number, unit / run_bytes());
    return ChunkAudit{timer_, found_.sms, unit, samples, count(), place, judge}.of(piece);
  }

 private:
  RemainderColors found_;
  std::vector<std::byte> table_;
  ColoredCopier copier_;
  MemoryTimer timer_;
};

}  // namespace

Result<std::unique_ptr<PoolColors>> find_remainders(const CardPointer& card,
                                                    const color::ColorScheme& scheme,
                                                    PageArena& arena) {
  DEMARC_TRY(MemoryTimer timer, MemoryTimer::create(card->gpu()));
  DEMARC_TRY(ColoredCopier copier, ColoredCopier::create(card->gpu()));
  DEMARC_TRY(RemainderColors found, measure_remainders(timer, arena, card->topology(), scheme));
  return std::make_unique<RemainderPool>(std::move(found), std::move(copier), std::move(timer));
}

}  // namespace demarc::cuda
