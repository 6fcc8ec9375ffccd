// Looks at chunks of coloured memory by timing, whatever their colours are.
#pragma once

#include <functional>

#include "demarc/card/memory_timer.hpp"
#include "demarc/card/pool_colors.hpp"
#include "demarc/device/slice_model.hpp"

namespace demarc::cuda {

inline constexpr double least_audit_agreement = 0.75;

// What was measured of a chunk: where its samples lie in their pages, and the first one's row.
struct MeasuredChunk {
  std::span<const std::uint64_t> in_page;
  const gpu::LatencyMatrix& latencies;
  std::size_t row;
};

struct ChunkAudit {
  const MemoryTimer& timer;
  std::span<const gpu::SmIndex> sms;
  std::uint64_t chunk = 0;    // bytes
  std::uint64_t samples = 0;  // per chunk
  std::uint32_t colors = 0;
  std::function<color::ArenaByte(color::LinearByte)> place;
  // Counts a chunk, or says false of one that is unclear.
  std::function<Result<bool>(const MeasuredChunk&, ColorAudit&)> judge;

  // Whole chunks from the one that the piece's first byte lies in to that of its last; what is
  // unclear is measured again, at the same places: samples that contradict each other because they
  // are of two colours do so each time.
  [[nodiscard]] Result<ColorAudit> of(const SharePiece& piece) const;
};

}  // namespace demarc::cuda
