// The memory requests of one block as the caches see them: warp by warp, in order, the distinct
// sectors of each warp instruction by line.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/locality/runs.hpp"
#include "predict/sector_cache.hpp"

namespace demarc::locality {

// What a block has still to ask for, and the request in hand.
struct BlockRequests {
  struct Part {
    std::uint64_t line = 0;
    SectorMask sectors = 0;
  };
  std::vector<Part> parts;
  std::uint16_t access = 0;
  std::uint32_t busy_warps = 0;

  // A run's lanes in one warp.
  struct Piece {
    std::uint64_t order = 0;  // step, access, request; of the next trip
    const Run* run = nullptr;
    std::uint32_t warp = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t trip = 0;
  };
  struct Warp {
    std::uint32_t next = 0;  // the first piece that has not begun
    std::uint32_t end = 0;
    std::vector<std::uint32_t> open;  // pieces that have trips left
    [[nodiscard]] bool busy() const { return next < end || !open.empty(); }
  };
  std::vector<Piece> pieces;
  std::vector<Warp> warps;
};

class RequestMaker {
 public:
  // Keeps a reference to `runs`.
  RequestMaker(const AccessRuns& runs, std::uint32_t line_bytes, std::uint32_t sector_bytes);
  void start(std::uint32_t block, BlockRequests& out);
  // The next request of the warp; false: it has none.
  bool next(std::uint32_t warp, BlockRequests& block);
  // What a block has still to ask for, of all that it asks for.
  [[nodiscard]] double left_share(const BlockRequests& block) const;

 private:
  void add_pieces(const Run& run, std::vector<BlockRequests::Piece>& pieces) const;
  void add_sectors(const BlockRequests::Piece& piece);
  [[nodiscard]] std::uint64_t order_of(const Run& run, std::uint32_t trip) const;

  const AccessRuns& runs_;
  std::vector<std::size_t> starts_;
  std::uint64_t sector_bytes_;
  std::uint64_t sectors_per_line_;
  std::vector<std::uint64_t> sectors_;
};

}  // namespace demarc::locality
