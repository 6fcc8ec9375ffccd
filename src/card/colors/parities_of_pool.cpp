// Colours of a pool that are parities: measures what pages add to the hash and keeps those of one
// constant, so that a position in the arena alone decides the colour.
#include <algorithm>
#include <map>

#include "colors/chunk_audit.hpp"
#include "colors/measuring.hpp"
#include "colors/pool_kinds.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t slice_chunk_bytes = 256;
constexpr std::uint32_t samples_per_page = 24;
// Latencies jump while the card changes its clocks; then measuring again helps.
constexpr int max_attempts = 3;
constexpr std::uint64_t max_samples_per_chunk = 16;  // fewer where a chunk has no room for so many

// Latencies of the first page of an arena and the hash bits they show. They are measured once per
// process, because SM numbers and floorsweeping differ between cards.
Result<gpu::SliceModel> measure_slices(const MemoryTimer& timer, const PageArena& arena) {
  const auto sms = measuring_sms(*arena.gpu());
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t at = 0; at < arena.page_bytes(); at += slice_chunk_bytes)
    offsets.push_back(at);
  DEMARC_TRY(const auto latencies, timer.hit_latencies(arena.address(), offsets, sms,
                                                       sms_measuring_together, hit_repeats));
  return gpu::make_slice_model(latencies, arena.page_bytes(), sms);
}

// The constants of all pages of an arena, bit i for masks[i] of the model; nothing for pages that
// are in doubt. check_failed if more than one page in ten is in doubt.
Result<std::vector<std::optional<std::uint32_t>>> measure_page_constants(
    const MemoryTimer& timer, const PageArena& arena, const gpu::SliceModel& model) {
  const auto read = [&](std::span<const std::uint64_t> addresses) {
    return timer.hit_latencies(arena.address(), addresses, model.sms, sms_measuring_together,
                               hit_repeats);
  };
  std::vector<std::optional<std::uint32_t>> constants;
  std::size_t doubtful = arena.pages();
  for (int attempt = 0; attempt < max_attempts && doubtful * 10 > arena.pages(); ++attempt) {
    DEMARC_TRY(const auto found,
               gpu::find_page_constants(model, arena.pages(), samples_per_page, read));
    constants.clear();
    for (const gpu::PageConstant& page : found) {
      constants.push_back(page.certain() ? std::optional(page.constant) : std::nullopt);
    }
    doubtful = static_cast<std::size_t>(
        std::count(constants.begin(), constants.end(), std::optional<std::uint32_t>()));
  }
  if (doubtful * 10 > arena.pages()) {
    return check_failed(
        "the constants of {} of {} pages are not certain: is another program using the card?",
        doubtful, arena.pages());
  }
  return constants;
}

// Runs of equal length at equal distances.
struct Rows {
  color::DeviceAddress address;
  std::uint64_t pitch, width, count, done;  // `done`: bytes copied before these
};

// What measured the pages, kept for audits.
struct Measurement {
  MemoryTimer timer;
  gpu::SliceModel model;
};

class ParityPool final : public PoolColors {
 public:
  ParityPool(color::Coloring coloring, std::uint32_t constant, std::string account,
             std::optional<Measurement> measured)
      : coloring_(std::move(coloring)),
        constant_(constant),
        account_(std::move(account)),
        measured_(std::move(measured)) {}

  [[nodiscard]] std::uint32_t count() const override { return coloring_.colors(); }
  [[nodiscard]] std::uint64_t run_bytes() const override { return coloring_.chunk_bytes(); }
  [[nodiscard]] std::string account() const override { return account_; }

  [[nodiscard]] Result<ShareColors> share(const PageArena& arena,
                                          const color::ColorSet& colors) override {
    DEMARC_TRY(const ColorShare share, share_of_colors(coloring_, colors));
    DEMARC_TRY(const std::uint32_t constant,
               share.coloring.constant_from_rows(coloring_.masks(), constant_));
    const auto masks = share.coloring.masks();
    // As seen from the start of the arena: its pages' constant is in the parities.
    const auto law =
        color::make_law(color::Parities{{masks.begin(), masks.end()}, share.color ^ constant});
    const color::DeviceAddress begin(arena.address());
    return ShareColors{law,
                       {.arena = begin, .window = *law->window(begin)},
                       law->bytes({arena.page_bytes(), arena.pages()})};
  }

  [[nodiscard]] Result<void> upload(const SharePiece& to, const void* source) const override {
    return copy(to, [source](CuCopy2d& copy, const Rows& rows) {
      copy.source_type = cu_memory_host;
      copy.source_host = static_cast<const char*>(source) + rows.done;
      copy.source_pitch = rows.width;
      copy.target_type = cu_memory_device;
      copy.target_device = rows.address.raw();
      copy.target_pitch = rows.pitch;
      return "cannot copy to coloured memory";
    });
  }

  [[nodiscard]] Result<void> download(const SharePiece& from, void* target) const override {
    return copy(from, [target](CuCopy2d& copy, const Rows& rows) {
      copy.source_type = cu_memory_device;
      copy.source_device = rows.address.raw();
      copy.source_pitch = rows.pitch;
      copy.target_type = cu_memory_host;
      copy.target_host = static_cast<char*>(target) + rows.done;
      copy.target_pitch = rows.width;
      return "cannot copy from coloured memory";
    });
  }

  [[nodiscard]] Result<ColorAudit> audit(const SharePiece& piece,
                                         const color::ColorSet& wanted) const override {
    if (!measured_) {
      return missing_capability("this pool was made from given constants; it cannot be audited");
    }
    const gpu::SliceModel& model = measured_->model;
    const std::uint64_t chunk = run_bytes();
    const auto place = [&](color::LinearByte at) {
      const color::ArenaByte position = piece.share.law->position(at, {});
      return position - position.raw() % slice_chunk_bytes;
    };
    const auto judge = [&](const MeasuredChunk& chunk_seen, ColorAudit& audit) -> Result<bool> {
      const auto found =
          model.page_constant(chunk_seen.in_page, chunk_seen.latencies, chunk_seen.row);
      if (found.agreement < least_audit_agreement) return false;
      DEMARC_TRY(const std::uint32_t constant,
                 coloring_.constant_from_rows(model.masks, found.constant));
      const std::uint32_t color =
          coloring_.color(color::ArenaByte(chunk_seen.in_page.front()), constant);
      ++audit.chunks_of_color[color];
      if (!wanted.contains(color)) ++audit.outside;
      return true;
    };
    const std::uint64_t samples =
        std::min(max_samples_per_chunk, std::max<std::uint64_t>(chunk / slice_chunk_bytes, 1));
    return ChunkAudit{measured_->timer, model.sms, chunk, samples, count(), place, judge}.of(piece);
  }

 private:
  [[nodiscard]] std::vector<Rows> rows(const SharePiece& piece) const {
    std::vector<Rows> all;
    for (std::uint64_t done = 0; done < piece.extent.bytes;) {
      const color::LinearByte at = piece.extent.first + done;
      const std::uint64_t run =
          std::min(piece.extent.bytes - done, run_bytes() - at.raw() % run_bytes());
      const auto where = piece.share.place.address(piece.share.law->position(at, {}));
      Rows* last = all.empty() ? nullptr : &all.back();
      if (last != nullptr && last->width == run &&
          (last->count == 1 || where - last->address == last->count * last->pitch)) {
        last->pitch = (where - last->address) / last->count;
        ++last->count;
      } else {
        all.push_back({where, run, run, 1, done});
      }
      done += run;
    }
    return all;
  }

  // Runs that lie at equal distances go in one two-dimensional copy. ends(copy, rows) sets its ends
  // and says what cannot be done if it fails.
  template <class Ends>
  [[nodiscard]] Result<void> copy(const SharePiece& piece, const Ends& ends) const {
    const GpuPointer& gpu = piece.arena.gpu();
    const char* what = "cannot copy coloured memory";
    for (const Rows& some : rows(piece)) {
      CuCopy2d copy{};
      what = ends(copy, some);
      copy.width_bytes = some.width;
      copy.height = some.count;
      DEMARC_CHECK(gpu->check(gpu->api().cuMemcpy2DAsync_v2(&copy, nullptr), what));
    }
    return gpu->check(gpu->api().cuStreamSynchronize(nullptr), what);
  }

  color::Coloring coloring_;
  std::uint32_t constant_;  // what the arena's pages add to the colours of their chunks
  std::string account_;
  std::optional<Measurement> measured_;
};

// Keeps the pages of the most frequent constant. At least one page has one.
Result<std::unique_ptr<PoolColors>> keep_one_constant(
    PageArena& arena, color::Coloring coloring,
    std::span<const std::optional<std::uint32_t>> constants, std::optional<Measurement> measured) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> pages;
  for (std::uint32_t page = 0; page < constants.size(); ++page) {
    if (constants[page]) pages[*constants[page]].push_back(page);
  }
  const auto most = std::max_element(pages.begin(), pages.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  const auto& [constant, kept] = *most;
  DEMARC_CHECK(arena.arrange(kept));
  std::string account =
      fmt::format("{} pages measured, {} kept, of one constant", constants.size(), kept.size());
  return std::make_unique<ParityPool>(std::move(coloring), constant, std::move(account),
                                      std::move(measured));
}

}  // namespace

Result<std::unique_ptr<PoolColors>> find_parities(const GpuPointer& gpu,
                                                  std::span<const std::uint64_t> masks,
                                                  PageArena& arena) {
  DEMARC_TRY(color::Coloring coloring, color::Coloring::make(masks, arena.page_bytes()));
  DEMARC_TRY(MemoryTimer timer, MemoryTimer::create(gpu));
  DEMARC_TRY(gpu::SliceModel model, measure_slices(timer, arena));
  DEMARC_TRY(auto constants, measure_page_constants(timer, arena, model));
  for (auto& constant : constants) {
    if (!constant) continue;  // in doubt: the page goes back to the driver
    DEMARC_TRY(constant, coloring.constant_from_rows(model.masks, *constant));
  }
  return keep_one_constant(arena, std::move(coloring), constants,
                           Measurement{std::move(timer), std::move(model)});
}

Result<std::unique_ptr<PoolColors>> given_parities(PageArena& arena, color::Coloring coloring,
                                                   std::span<const std::uint32_t> constants) {
  if (constants.size() != arena.pages()) {
    return invalid_input("{} page constants were given for an arena of {} pages", constants.size(),
                         arena.pages());
  }
  return keep_one_constant(
      arena, std::move(coloring),
      std::vector<std::optional<std::uint32_t>>(constants.begin(), constants.end()), std::nullopt);
}

}  // namespace demarc::cuda
