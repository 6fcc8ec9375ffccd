// Times chunks of coloured memory, those in doubt again.
#include "colors/chunk_audit.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "colors/measuring.hpp"
#include "demarc/base/rounding.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t audit_batch = 1024;  // chunks measured in one go
constexpr std::uint64_t max_looks = 4;       // at a chunk that stays unclear
// Before the second look; each is twice the last.
constexpr std::chrono::milliseconds first_look_pause{50};

}  // namespace

std::uint64_t ColorAudit::chunks() const {
  return std::accumulate(chunks_of_color.begin(), chunks_of_color.end(), unclear);
}

Result<ColorAudit> ChunkAudit::of(const SharePiece& piece) const {
  ColorAudit audit;
  audit.chunk_bytes = chunk;
  audit.chunks_of_color.resize(colors);
  const std::uint64_t begin = piece.extent.first.raw() / chunk;
  std::vector<std::uint64_t> chunks(ceil_div(piece.extent.end().raw(), chunk) - begin);
  std::iota(chunks.begin(), chunks.end(), begin);
  const std::uint64_t between = chunk / samples;
  for (std::uint64_t look = 0; look < max_looks && !chunks.empty(); ++look) {
    // What disturbs the card has time to end: the driver fills with zeros what a program left.
    if (look != 0) std::this_thread::sleep_for(first_look_pause * (1U << (look - 1)));
    std::vector<std::uint64_t> unclear;
    for (std::size_t batch = 0; batch < chunks.size(); batch += audit_batch) {
      const std::size_t count = std::min<std::size_t>(chunks.size() - batch, audit_batch);
      std::vector<std::uint64_t> offsets;
      for (std::size_t i = batch; i < batch + count; ++i) {
        for (std::uint64_t s = 0; s < samples; ++s) {
          offsets.push_back(place(color::LinearByte(chunks[i] * chunk + between * s)).raw());
        }
      }
      DEMARC_TRY(const auto latencies, timer.hit_latencies(piece.arena.address(), offsets, sms,
                                                           sms_measuring_together, hit_repeats));
      for (std::uint64_t& offset : offsets) offset %= piece.arena.page_bytes();
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = i * samples;
        const auto in_page = std::span<const std::uint64_t>(offsets).subspan(row, samples);
        DEMARC_TRY(const bool clear, judge(MeasuredChunk{in_page, latencies, row}, audit));
        if (!clear) unclear.push_back(chunks[batch + i]);
      }
    }
    chunks = std::move(unclear);
  }
  audit.unclear = chunks.size();
  return audit;
}

}  // namespace demarc::cuda
