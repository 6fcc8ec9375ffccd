// Joins granules of a share that lie one after the other, and lays those of other pages over one.
#include "demarc/color/page_pieces.hpp"

#include <algorithm>
#include <map>

#include "demarc/device/pages.hpp"

namespace demarc::color {
namespace {

// A piece that is laid under others is split, so it has to be mapped by pages that are no larger
// than a granule: the module takes the largest that all its numbers are multiples of.
bool can_be_split(const PagePiece& piece, std::uint64_t granule) {
  return (piece.linear.raw() | piece.at.raw() | piece.bytes) % (2 * granule) != 0;
}

// Stretches of a page of the window, each mapped by itself.
std::vector<PagePiece> stretches(const Law& law, std::span<const std::byte> table,
                                 const Extent& extent, std::uint64_t page_bytes) {
  const std::uint64_t granule = law.granule();
  std::vector<PagePiece> all;
  for (LinearByte linear = extent.first; linear < extent.end(); linear = linear + granule) {
    const ArenaByte at = law.position(linear, table);
    if (!all.empty()) {
      PagePiece& last = all.back();
      const bool follows = at == last.at + last.bytes;
      const bool same_page = at.raw() / page_bytes == last.at.raw() / page_bytes;
      if (follows && same_page) {
        last.bytes += granule;
        continue;
      }
    }
    all.push_back({linear, at, granule});
  }
  return all;
}

// The stretches at one distance from their places in the arena, on one page, that are the most.
std::vector<PagePiece> most_in_line(const std::vector<PagePiece>& all, std::uint64_t page_bytes) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<PagePiece>> lines;
  for (const PagePiece& one : all) {
    lines[{one.at.raw() / page_bytes, one.at.raw() - one.linear.raw()}].push_back(one);
  }
  const auto most = std::max_element(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  return most->second;
}

// One piece under all of them saves those that it shows in their places.
std::vector<PagePiece> laid_over(std::vector<PagePiece> all, std::uint64_t page_bytes,
                                 std::uint64_t granule) {
  std::vector<PagePiece> line = most_in_line(all, page_bytes);
  PagePiece under = line.front();
  while (line.size() > 1) {
    under.bytes = line.back().linear + line.back().bytes - under.linear;
    if (can_be_split(under, granule)) break;
    line.pop_back();
  }
  if (line.size() <= 1) return all;
  std::erase_if(all, [&](const PagePiece& one) {
    return std::find(line.begin(), line.end(), one) != line.end();
  });
  all.insert(all.begin(), under);
  return all;
}

}  // namespace

Result<void> check_survives_pages(const Law& law) {
  const std::uint64_t granule = law.granule();
  constexpr std::uint64_t least = gpu::smallest_page_bytes;
  if (granule >= least && granule % least == 0) return {};
  return missing_capability(
      "{} change every {} bytes: a page of {} KiB has bytes of several colours, so no page table "
      "divides them; give the program PTX, or a build of it that has PTX",
      law.what_changes(), granule, least / 1024);
}

Result<std::vector<PagePiece>> page_pieces(const Law& law, std::span<const std::byte> table,
                                           const Extent& extent, std::uint64_t page_bytes) {
  DEMARC_CHECK(check_survives_pages(law));
  const std::uint64_t granule = law.granule();
  if (extent.first.raw() % granule != 0 || extent.bytes % granule != 0 || extent.bytes == 0 ||
      extent.first.raw() / page_bytes != (extent.end() - 1).raw() / page_bytes) {
    return invalid_input("{} bytes from {} on are no whole granules of {} bytes of one page",
                         extent.bytes, extent.first, granule);
  }
  return laid_over(stretches(law, table, extent, page_bytes), page_bytes, granule);
}

}  // namespace demarc::color
