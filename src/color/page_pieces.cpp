// Joins granules of a share that lie one after the other.
#include "demarc/color/page_pieces.hpp"

namespace demarc::color {

Result<void> check_survives_pages(const Law& law, std::uint64_t least) {
  const std::uint64_t granule = law.granule();
  if (granule >= least && granule % least == 0) return {};
  return missing_capability(
      "{} change every {} bytes: a page of {} KiB has bytes of several colours, so no page table "
      "divides them; give the program PTX, or a build of it that has PTX",
      law.what_changes(), granule, least / 1024);
}

Result<std::vector<PagePiece>> page_pieces(const Law& law, std::span<const std::byte> table,
                                           const Extent& extent, std::uint64_t page_bytes,
                                           std::uint64_t least) {
  DEMARC_CHECK(check_survives_pages(law, least));
  const std::uint64_t granule = law.granule();
  if (extent.first.raw() % granule != 0 || extent.bytes % granule != 0) {
    return invalid_input("{} bytes from {} on do not consist of whole granules of {} bytes",
                         extent.bytes, extent.first, granule);
  }
  std::vector<PagePiece> pieces;
  for (LinearByte linear = extent.first; linear < extent.end(); linear = linear + granule) {
    const ArenaByte at = law.position(linear, table);
    if (!pieces.empty()) {
      PagePiece& last = pieces.back();
      const bool follows = at == last.at + last.bytes;
      const bool same_page = at.raw() / page_bytes == last.at.raw() / page_bytes;
      if (follows && same_page) {
        last.bytes += granule;
        continue;
      }
    }
    pieces.push_back({linear, at, granule});
  }
  return pieces;
}

}  // namespace demarc::color
