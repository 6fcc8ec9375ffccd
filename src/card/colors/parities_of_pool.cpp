// Colours of a pool that are parities: measures what pages add to the hash, and arranges the pages
// so that a position in the arena alone decides the colour.
#include <algorithm>
#include <bit>
#include <map>

#include "colors/chunk_audit.hpp"
#include "colors/measuring.hpp"
#include "colors/pool_kinds.hpp"
#include "demarc/base/gf2.hpp"

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
  std::uint64_t pitch, width;
  std::uint64_t step;  // from row to row in the memory that is not coloured
  std::uint64_t count;
  std::uint64_t done;  // bytes of that memory before these

  // Whether a run of so many bytes is the next row; the second one is within a page of the first.
  [[nodiscard]] bool continues(color::DeviceAddress where, std::uint64_t behind, std::uint64_t run,
                               std::uint64_t page_bytes) const {
    if (run != width || where <= address) return false;
    if (count == 1) return where - address < page_bytes;
    return where - address == count * pitch && behind - done == count * step;
  }
};

// What measured the pages, kept for audits.
struct Measurement {
  MemoryTimer timer;
  gpu::SliceModel model;
};

// What an arrangement of pages makes of a colouring within pages.
struct Arranged {
  color::Coloring coloring;    // takes positions in the arena
  std::uint32_t constant = 0;  // that is added to it
  bool in_groups = false;      // the masks have bits above a page, which are inserted
};

// The same parities, each with a bit above the page that is in no other mask.
color::Parities above_pages(std::span<const std::uint64_t> masks, std::uint32_t color) {
  // Masks begin above bit 3; bit 0 keeps what the parity must be while masks are added up.
  std::vector<std::uint64_t> rows;
  for (std::size_t i = 0; i < masks.size(); ++i) rows.push_back(masks[i] | (color >> i & 1U));
  rows = gf2_row_basis(rows);
  std::sort(rows.begin(), rows.end());
  color::Parities parities;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    parities.masks.push_back(rows[i] & ~std::uint64_t{1});
    parities.color |= static_cast<std::uint32_t>(rows[i] & 1U) << i;
    parities.pivots.push_back(static_cast<std::uint32_t>(std::bit_width(rows[i]) - 1));
  }
  return parities;
}

class ParityPool final : public PoolColors {
 public:
  ParityPool(color::Coloring coloring, Arranged arranged, std::string account,
             std::optional<Measurement> measured)
      : coloring_(std::move(coloring)),
        arranged_(std::move(arranged)),
        account_(std::move(account)),
        measured_(std::move(measured)) {}

  [[nodiscard]] std::uint32_t count() const override { return coloring_.colors(); }
  [[nodiscard]] std::uint64_t run_bytes() const override { return coloring_.chunk_bytes(); }
  [[nodiscard]] std::string account() const override { return account_; }

  [[nodiscard]] Result<ShareColors> share(const PageArena& arena,
                                          const color::ColorSet& colors) override {
    const color::Coloring& coloring = arranged_.coloring;
    DEMARC_TRY(const ColorShare share, share_of_colors(coloring, colors));
    DEMARC_TRY(const std::uint32_t constant,
               share.coloring.constant_from_rows(coloring.masks(), arranged_.constant));
    const auto masks = share.coloring.masks();
    // As seen from the start of the arena: its pages' constant is in the parities.
    const std::uint32_t color = share.color ^ constant;
    const auto law =
        color::make_law(arranged_.in_groups ? above_pages(masks, color)
                                            : color::Parities{{masks.begin(), masks.end()}, color});
    const color::DeviceAddress begin(arena.address());
    return ShareColors{law,
                       {.arena = begin, .window = *law->window(begin)},
                       law->bytes({arena.page_bytes(), arena.pages()})};
  }

  [[nodiscard]] Result<void> upload(const SharePiece& to, const void* source) const override {
    return copy(to, [source](CuCopy2d& copy, const Rows& rows) {
      copy.source_type = cu_memory_host;
      copy.source_host = static_cast<const char*>(source) + rows.done;
      copy.source_pitch = rows.step;
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
      copy.target_pitch = rows.step;
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
      // Runs on the pages of a group take turns.
      const std::size_t open = std::min<std::size_t>(all.size(), count());
      const auto goes_on = std::find_if(
          all.end() - static_cast<std::ptrdiff_t>(open), all.end(), [&](const Rows& rows) {
            return rows.continues(where, done, run, piece.arena.page_bytes());
          });
      if (goes_on != all.end()) {
        goes_on->pitch = (where - goes_on->address) / goes_on->count;
        goes_on->step = (done - goes_on->done) / goes_on->count;
        ++goes_on->count;
      } else {
        all.push_back({where, run, run, run, 1, done});
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

  color::Coloring coloring_;  // takes positions in a page, and leaves out the page's constant
  Arranged arranged_;
  std::string account_;
  std::optional<Measurement> measured_;
};

// Pages by their constants; those in doubt are left out.
using PagesOfConstants = std::map<std::uint32_t, std::vector<std::uint32_t>>;

// As many pages of each constant: page i of a group has the constant i.
std::vector<std::uint32_t> in_groups(const PagesOfConstants& pages, std::uint32_t constants) {
  std::vector<std::uint32_t> order;
  if (pages.size() != constants) return order;
  const auto least = std::min_element(pages.begin(), pages.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  for (std::size_t group = 0; group < least->second.size(); ++group) {
    for (const auto& [constant, own] : pages) order.push_back(own[group]);
  }
  return order;
}

// A pool that lends pages is a whole card's: it keeps pages of all constants, in groups, because
// half of the memory and more would go back otherwise. Other pools have less than the card, and
// keep the pages of the most frequent constant, which takes two instructions less an access.
Result<std::unique_ptr<PoolColors>> keep_pages(
    PageArena& arena, color::Coloring coloring,
    std::span<const std::optional<std::uint32_t>> constants, std::optional<Measurement> measured) {
  PagesOfConstants pages;
  for (std::uint32_t page = 0; page < constants.size(); ++page) {
    if (constants[page]) pages[*constants[page]].push_back(page);
  }
  const auto most = std::max_element(pages.begin(), pages.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  const auto grouped = in_groups(pages, coloring.colors());
  if (arena.lending() == Lending::none || grouped.size() <= most->second.size()) {
    const auto& [constant, kept] = *most;
    DEMARC_CHECK(arena.arrange(kept));
    std::string account =
        fmt::format("{} pages measured, {} kept, of one constant", constants.size(), kept.size());
    const Arranged arranged{coloring, constant};
    return std::make_unique<ParityPool>(std::move(coloring), arranged, std::move(account),
                                        std::move(measured));
  }
  DEMARC_CHECK(arena.arrange(grouped, {}, {}, coloring.colors()));
  std::vector<std::uint64_t> masks(coloring.masks().begin(), coloring.masks().end());
  for (std::size_t i = 0; i < masks.size(); ++i) masks[i] |= arena.page_bytes() << i;
  DEMARC_TRY(const color::Coloring of_positions, color::Coloring::make(masks, 0));
  std::string account = fmt::format("{} pages measured, {} kept, in groups of {} constants",
                                    constants.size(), grouped.size(), coloring.colors());
  return std::make_unique<ParityPool>(std::move(coloring), Arranged{of_positions, 0, true},
                                      std::move(account), std::move(measured));
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
  return keep_pages(arena, std::move(coloring), constants,
                    Measurement{std::move(timer), std::move(model)});
}

Result<std::unique_ptr<PoolColors>> given_parities(PageArena& arena, color::Coloring coloring,
                                                   std::span<const std::uint32_t> constants) {
  if (constants.size() != arena.pages()) {
    return invalid_input("{} page constants were given for an arena of {} pages", constants.size(),
                         arena.pages());
  }
  return keep_pages(arena, std::move(coloring),
                    std::vector<std::optional<std::uint32_t>>(constants.begin(), constants.end()),
                    std::nullopt);
}

}  // namespace demarc::cuda
