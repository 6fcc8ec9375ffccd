#include "block_requests.hpp"

#include <algorithm>
#include <cstdlib>

namespace demarc::locality {

RequestMaker::RequestMaker(const AccessRuns& runs, std::uint32_t line_bytes,
                           std::uint32_t sector_bytes)
    : runs_(runs),
      starts_(block_starts(runs)),
      sector_bytes_(std::max(1U, sector_bytes)),
      sectors_per_line_(std::max(1U, line_bytes / std::max(1U, sector_bytes))) {}

void RequestMaker::make(std::uint32_t block, BlockRequests& out) {
  pieces_.clear();
  for (std::size_t r = starts_[block]; r < starts_[block + 1]; ++r) add_pieces(runs_.runs[r]);
  std::stable_sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    return a.warp != b.warp ? a.warp < b.warp : a.order < b.order;
  });
  const std::uint32_t warps = (runs_.threads() + 31) / 32;
  out.requests.clear();
  out.parts.clear();
  out.warp_next.assign(warps, 0);
  out.warp_end.assign(warps, 0);
  std::size_t i = 0;
  for (std::uint32_t warp = 0; warp < warps; ++warp) {
    out.warp_next[warp] = static_cast<std::uint32_t>(out.requests.size());
    while (i < pieces_.size() && pieces_[i].warp == warp) i = add_request(i, out);
    out.warp_end[warp] = static_cast<std::uint32_t>(out.requests.size());
  }
  out.left = out.requests.size();
}

void RequestMaker::add_pieces(const Run& run) {
  for (std::uint32_t done = 0; done < run.count;) {
    const std::uint32_t warp = (run.thread + done) / 32;
    const std::uint32_t count = std::min(run.count - done, (warp + 1) * 32 - run.thread - done);
    pieces_.push_back({warp,
                       (std::uint64_t{run.step} << 32U) | (std::uint64_t{run.access} << 16U) |
                           (run.request & 0xffffU),
                       &run, done, count});
    done += count;
  }
}

// Pieces of one instruction stand side by side; their distinct sectors make a request.
std::size_t RequestMaker::add_request(std::size_t i, BlockRequests& out) {
  const Piece& head = pieces_[i];
  const Access& access = runs_.accesses[head.run->access];
  sectors_.clear();
  for (; i < pieces_.size() && pieces_[i].warp == head.warp && pieces_[i].order == head.order;
       ++i) {
    const Piece& piece = pieces_[i];
    const std::uint64_t begin =
        piece.run->address + static_cast<std::uint64_t>(piece.run->stride) * piece.first;
    const std::uint64_t end =
        begin + static_cast<std::uint64_t>(piece.run->stride) * (piece.count - 1);
    if (static_cast<std::uint64_t>(std::abs(piece.run->stride)) <= sector_bytes_) {
      // No sector between the first and the last is left out.
      const std::uint64_t last = (std::max(begin, end) + access.bytes - 1) / sector_bytes_;
      for (std::uint64_t sector = std::min(begin, end) / sector_bytes_; sector <= last; ++sector)
        sectors_.push_back(sector);
      continue;
    }
    for (std::uint32_t k = 0; k < piece.count; ++k) {
      const std::uint64_t address = begin + static_cast<std::uint64_t>(piece.run->stride) * k;
      const std::uint64_t last = (address + access.bytes - 1) / sector_bytes_;
      for (std::uint64_t sector = address / sector_bytes_; sector <= last; ++sector)
        if (sectors_.empty() || sectors_.back() != sector) sectors_.push_back(sector);
    }
  }
  if (!std::is_sorted(sectors_.begin(), sectors_.end()))
    std::sort(sectors_.begin(), sectors_.end());
  const auto first = static_cast<std::uint32_t>(out.parts.size());
  for (const std::uint64_t sector : sectors_) {
    const std::uint64_t line = sector / sectors_per_line_;
    if (out.parts.size() == first || out.parts.back().line != line) out.parts.push_back({line, 0});
    out.parts.back().sectors |= SectorMask{1} << (sector % sectors_per_line_);
  }
  out.requests.push_back(
      {first, static_cast<std::uint32_t>(out.parts.size()) - first, head.run->access});
  return i;
}

}  // namespace demarc::locality
