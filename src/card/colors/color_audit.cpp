// Times chunks of coloured memory and counts those that lie in another colour.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "colors/measuring.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/card/colored_memory.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t audit_samples = 16;  // of a chunk, where it is large enough
constexpr std::uint64_t audit_batch = 1024;  // chunks measured in one go
constexpr std::uint64_t max_looks = 4;       // at a chunk that stays unclear
// Before the second look; each is twice the last.
constexpr std::chrono::milliseconds first_look_pause{50};
constexpr std::uint64_t sample_bytes = 256;  // a chunk of the slices
constexpr std::uint64_t number_samples = 4;  // of the chunks of one number, remainders
constexpr double least_audit_agreement = 0.75;

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

// What was measured of a chunk: where its samples lie in their pages, and the first one's row.
struct Chunk {
  std::span<const std::uint64_t> in_page;
  const gpu::LatencyMatrix& latencies;
  std::size_t row;
};

struct Audited {
  const MemoryTimer& timer;
  const PageArena& arena;
  std::span<const std::uint32_t> sms;
  std::uint64_t chunk;  // bytes
  std::uint64_t samples;
};

// Whole chunks from the one that byte `first` of a share lies in to that of its last byte; what is
// unclear is measured again, at the same places: samples that contradict each other because they
// are of two colours do so each time. place(linear address) is an offset in the arena; judge(Chunk,
// ColorAudit&) counts a chunk, or says false of one that is unclear.
template <class Place, class Judge>
Result<ColorAudit> audit_chunks(const Audited& of, std::uint64_t first, std::uint64_t bytes,
                                std::uint32_t colors, const Place& place, const Judge& judge) {
  ColorAudit audit;
  audit.chunk_bytes = of.chunk;
  audit.chunks_of_color.resize(colors);
  const std::uint64_t begin = first / of.chunk;
  std::vector<std::uint64_t> chunks(ceil_div(first + bytes, of.chunk) - begin);
  std::iota(chunks.begin(), chunks.end(), begin);
  const std::uint64_t between = of.chunk / of.samples;
  for (std::uint64_t look = 0; look < max_looks && !chunks.empty(); ++look) {
    // What disturbs the card has time to end: the driver fills with zeros what a program left.
    if (look != 0) std::this_thread::sleep_for(first_look_pause * (1U << (look - 1)));
    std::vector<std::uint64_t> unclear;
    for (std::size_t batch = 0; batch < chunks.size(); batch += audit_batch) {
      const std::size_t count = std::min<std::size_t>(chunks.size() - batch, audit_batch);
      std::vector<std::uint64_t> offsets;
      for (std::size_t i = batch; i < batch + count; ++i) {
        for (std::uint64_t s = 0; s < of.samples; ++s) {
          offsets.push_back(place(chunks[i] * of.chunk + between * s));
        }
      }
      DEMARC_TRY(const auto latencies, of.timer.hit_latencies(of.arena.address(), offsets, of.sms,
                                                              sms_measuring_together, hit_repeats));
      for (std::uint64_t& offset : offsets) offset %= of.arena.page_bytes();
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = i * of.samples;
        const auto in_page = std::span<const std::uint64_t>(offsets).subspan(row, of.samples);
        DEMARC_TRY(const bool clear, judge(Chunk{in_page, latencies, row}, audit));
        if (!clear) unclear.push_back(chunks[batch + i]);
      }
    }
    chunks = std::move(unclear);
  }
  audit.unclear = chunks.size();
  return audit;
}

}  // namespace

std::uint64_t ColorAudit::chunks() const {
  return std::accumulate(chunks_of_color.begin(), chunks_of_color.end(), unclear);
}

Result<ColorAudit> ColoredBuffer::audit() const {
  if (!pool_->timer_) {
    return missing_capability("this pool was made from given constants; it cannot be audited");
  }
  return pool_->remainders_ ? audit_remainders() : audit_masks();
}

Result<ColorAudit> ColoredBuffer::audit_masks() const {
  const gpu::SliceModel& model = *pool_->model_;
  const color::Coloring& coloring = pool_->coloring();
  const color::ColorSet& wanted = pool_->shares_[share_index_].color_set;
  const std::uint64_t region = share_.place.arena - pool_->arena().address();
  const std::uint64_t chunk = run_bytes();
  const auto place = [&](std::uint64_t at) {
    return region + share_.law->position(at, {}) / sample_bytes * sample_bytes;
  };
  const auto judge = [&](const Chunk& measured, ColorAudit& audit) -> Result<bool> {
    const auto found = model.page_constant(measured.in_page, measured.latencies, measured.row);
    if (found.agreement < least_audit_agreement) {
      return false;
    }
    DEMARC_TRY(const std::uint32_t constant,
               coloring.constant_from_rows(model.masks, found.constant));
    const std::uint32_t color = coloring.color(measured.in_page.front(), constant);
    ++audit.chunks_of_color[color];
    if (!wanted.contains(color)) ++audit.outside;
    return true;
  };
  const std::uint64_t samples =
      std::min(audit_samples, std::max<std::uint64_t>(chunk / sample_bytes, 1));
  return audit_chunks({*pool_->timer_, pool_->arena(), model.sms, chunk, samples}, first_, bytes_,
                      coloring.colors(), place, judge);
}

// A chunk here is what has one number, 2 KiB on an H200.
Result<ColorAudit> ColoredBuffer::audit_remainders() const {
  const RemainderColors& colors = *pool_->remainders();
  const color::RemainderHash& hash = colors.coloring.hash();
  DEMARC_TRY(const auto window,
             window_of_colors(colors.coloring, pool_->shares_[share_index_].color_set));
  const std::uint64_t unit = hash.unit_bytes();
  const auto place = [&](std::uint64_t at) { return share_.law->position(at, pool_->table()); };
  const auto judge = [&](const Chunk& measured, ColorAudit& audit) -> Result<bool> {
    const auto found = color::find_number_remainders(colors.model, measured.in_page,
                                                     measured.latencies, measured.row);
    const auto inside = std::count_if(
        found.remainders.begin(), found.remainders.end(), [&](std::uint32_t remainder) {
          return behind(remainder, hash.modulus, window) < window.count;
        });
    const bool all = inside == std::ssize(found.remainders);
    if (found.agreement < least_audit_agreement || (inside != 0 && !all)) {
      return false;
    }
    ++audit.chunks_of_color[color_of(found.remainders.front(), colors.coloring)];
    if (!all) ++audit.outside;
    return true;
  };
  const std::uint64_t samples = std::min(number_samples, unit / run_bytes());
  return audit_chunks({*pool_->timer_, pool_->arena(), colors.sms, unit, samples}, first_, bytes_,
                      pool_->colors(), place, judge);
}

}  // namespace demarc::cuda
