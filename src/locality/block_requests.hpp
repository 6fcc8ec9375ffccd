// The memory requests of one block as the caches see them: warp by warp, in order, the distinct
// sectors of each warp instruction by line.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/locality/runs.hpp"
#include "sector_cache.hpp"

namespace demarc::locality {

// The requests of warp w are [warp_next[w], warp_end[w]).
struct BlockRequests {
  struct Part {
    std::uint64_t line = 0;
    SectorMask sectors = 0;
  };
  struct Request {
    std::uint32_t first_part = 0;
    std::uint32_t parts = 0;
    std::uint16_t access = 0;
  };
  std::vector<Request> requests;
  std::vector<Part> parts;
  std::vector<std::uint32_t> warp_next;
  std::vector<std::uint32_t> warp_end;
  std::size_t left = 0;
};

class RequestMaker {
 public:
  // Keeps a reference to `runs`.
  RequestMaker(const AccessRuns& runs, std::uint32_t line_bytes, std::uint32_t sector_bytes);
  void make(std::uint32_t block, BlockRequests& out);

 private:
  struct Piece {
    std::uint32_t warp = 0;
    std::uint64_t order = 0;  // step, access, request
    const Run* run = nullptr;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  void add_pieces(const Run& run);
  std::size_t add_request(std::size_t i, BlockRequests& out);

  const AccessRuns& runs_;
  std::vector<std::size_t> starts_;
  std::uint64_t sector_bytes_;
  std::uint64_t sectors_per_line_;
  std::vector<Piece> pieces_;
  std::vector<std::uint64_t> sectors_;
};

}  // namespace demarc::locality
