// Turns the runs of a block into its memory requests, warp by warp and in order.
#include "maps/block_requests.hpp"

#include <algorithm>
#include <cstdlib>

namespace demarc::locality {

RequestMaker::RequestMaker(const AccessRuns& runs, std::uint32_t line_bytes,
                           std::uint32_t sector_bytes)
    : runs_(runs),
      starts_(block_starts(runs)),
      sector_bytes_(std::max(1U, sector_bytes)),
      sectors_per_line_(std::max(1U, line_bytes / std::max(1U, sector_bytes))) {}

std::uint64_t RequestMaker::order_of(const Run& run, std::uint32_t trip) const {
  const std::uint64_t step = run.step + std::uint64_t{trip} * runs_.loop_of(run).steps;
  return (step << 32U) | (std::uint64_t{run.access} << 16U) | ((run.request + trip) & 0xffffU);
}

void RequestMaker::start(std::uint32_t block, BlockRequests& out) {
  std::vector<BlockRequests::Piece>& pieces = out.pieces;
  pieces.clear();
  for (std::size_t r = starts_[block]; r < starts_[block + 1]; ++r)
    add_pieces(runs_.runs[r], pieces);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const BlockRequests::Piece& a, const BlockRequests::Piece& b) {
                     return a.warp != b.warp ? a.warp < b.warp : a.order < b.order;
                   });
  out.warps.resize((runs_.threads() + 31) / 32);
  out.busy_warps = 0;
  std::uint32_t i = 0;
  for (std::uint32_t warp = 0; warp < out.warps.size(); ++warp) {
    BlockRequests::Warp& one = out.warps[warp];
    one.open.clear();
    one.next = i;
    while (i < pieces.size() && pieces[i].warp == warp) ++i;
    one.end = i;
    if (one.next < one.end) ++out.busy_warps;
  }
}

void RequestMaker::add_pieces(const Run& run, std::vector<BlockRequests::Piece>& pieces) const {
  for (std::uint32_t done = 0; done < run.count;) {
    const std::uint32_t warp = (run.thread + done) / 32;
    const std::uint32_t count = std::min(run.count - done, (warp + 1) * 32 - run.thread - done);
    pieces.push_back({order_of(run, 0), &run, warp, done, count, 0});
    done += count;
  }
}

// Pieces of one instruction have the same place in the order; their distinct sectors make a
// request.
bool RequestMaker::next(std::uint32_t warp, BlockRequests& block) {
  BlockRequests::Warp& of = block.warps[warp];
  std::vector<BlockRequests::Piece>& pieces = block.pieces;
  if (of.next == of.end && of.open.empty()) return false;
  std::uint64_t order = of.next < of.end ? pieces[of.next].order : ~std::uint64_t{0};
  for (const std::uint32_t piece : of.open) order = std::min(order, pieces[piece].order);
  for (; of.next < of.end && pieces[of.next].order == order; ++of.next) of.open.push_back(of.next);
  sectors_.clear();
  std::size_t kept = 0;
  for (const std::uint32_t i : of.open) {
    BlockRequests::Piece& piece = pieces[i];
    if (piece.order == order) {
      block.access = piece.run->access;
      add_sectors(piece);
      if (++piece.trip == runs_.loop_of(*piece.run).trips) continue;
      piece.order = order_of(*piece.run, piece.trip);
    }
    of.open[kept++] = i;
  }
  of.open.resize(kept);
  if (of.next == of.end && of.open.empty()) --block.busy_warps;
  if (!std::is_sorted(sectors_.begin(), sectors_.end()))
    std::sort(sectors_.begin(), sectors_.end());
  block.parts.clear();
  for (const std::uint64_t sector : sectors_) {
    const std::uint64_t line = sector / sectors_per_line_;
    if (block.parts.empty() || block.parts.back().line != line) block.parts.push_back({line, 0});
    block.parts.back().sectors |= SectorMask{1} << (sector % sectors_per_line_);
  }
  return true;
}

double RequestMaker::left_share(const BlockRequests& block) const {
  std::uint64_t all = 0;
  for (const BlockRequests::Piece& piece : block.pieces) all += runs_.loop_of(*piece.run).trips;
  if (all == 0) return 0;
  std::uint64_t left = 0;
  const auto add = [&](const BlockRequests::Piece& piece) {
    left += runs_.loop_of(*piece.run).trips - piece.trip;
  };
  for (const BlockRequests::Warp& warp : block.warps) {
    for (std::uint32_t i = warp.next; i < warp.end; ++i) add(block.pieces[i]);
    for (const std::uint32_t i : warp.open) add(block.pieces[i]);
  }
  return static_cast<double>(left) / static_cast<double>(all);
}

void RequestMaker::add_sectors(const BlockRequests::Piece& piece) {
  const Run& run = *piece.run;
  const std::uint32_t bytes = runs_.accesses[run.access].bytes;
  const auto stride = static_cast<std::uint64_t>(run.stride);
  const std::uint64_t begin = run.address + stride * piece.first +
                              static_cast<std::uint64_t>(runs_.loop_of(run).stride) * piece.trip;
  const std::uint64_t end = begin + stride * (piece.count - 1);
  if (static_cast<std::uint64_t>(std::abs(run.stride)) <= sector_bytes_) {
    // No sector between the first and the last is left out.
    const std::uint64_t last = (std::max(begin, end) + bytes - 1) / sector_bytes_;
    for (std::uint64_t sector = std::min(begin, end) / sector_bytes_; sector <= last; ++sector)
      sectors_.push_back(sector);
    return;
  }
  for (std::uint32_t k = 0; k < piece.count; ++k) {
    const std::uint64_t address = begin + stride * k;
    const std::uint64_t last = (address + bytes - 1) / sector_bytes_;
    for (std::uint64_t sector = address / sector_bytes_; sector <= last; ++sector)
      if (sectors_.empty() || sectors_.back() != sector) sectors_.push_back(sector);
  }
}

}  // namespace demarc::locality
