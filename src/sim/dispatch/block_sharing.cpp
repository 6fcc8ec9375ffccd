#include "demarc/sim/dispatch/block_sharing.hpp"

#include <algorithm>

#include "demarc/base/json.hpp"

namespace demarc::sim {

BlockSharing::BlockSharing(std::uint32_t blocks, const std::vector<SharedCell>& cells)
    : first_(std::size_t{blocks} + 1) {
  const BlockNumber end(blocks);
  const auto known = [end](const SharedCell& c) { return c.low < c.high && c.high < end; };
  for (const SharedCell& cell : cells) {
    if (known(cell)) ++first_[cell.high + 1];
  }
  for (const BlockNumber b : indices<BlockNumber>(blocks)) first_[b + 1] += first_[b];
  earlier_.resize(first_.back());
  PerIndex<BlockNumber, std::size_t> next(first_.begin(), first_.end() - 1);
  for (const SharedCell& cell : cells) {
    if (known(cell)) earlier_[next[cell.high]++] = {cell.low, cell.amount};
  }
}

Result<BlockSharing> parse_block_sharing(std::string_view text, std::string_view source) {
  constexpr std::int64_t most_blocks = 1 << 24;
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject root, JsonObject::of(json, std::string(source)));
  DEMARC_TRY(const std::string schema, root.string("schema"));
  if (schema != "demarc.locality/1") {
    return invalid_input("{}: schema '{}': expected demarc.locality/1", source, schema);
  }
  DEMARC_TRY(JsonObject inter, root.object("inter"));
  if (!inter.has("map")) {
    return invalid_input(
        "{}: inter.map is missing: the map between blocks is needed (demarc locality --json "
        "--maps)",
        source);
  }
  DEMARC_TRY(JsonObject map, inter.object("map"));
  DEMARC_TRY(const std::int64_t size, map.integer("size", 1, most_blocks));
  DEMARC_TRY(const Json* cells, map.array("cells"));
  std::vector<SharedCell> found;
  for (const Json& cell : *cells) {
    const std::string where = fmt::format("{}: inter.map.cells[{}]", source, found.size());
    const bool numbers =
        cell.is_array() && cell.size() == 3 &&
        std::all_of(cell.begin(), cell.end(), [](const Json& v) { return v.is_number_unsigned(); });
    if (!numbers) return invalid_input("{}: expected [row, column, value]", where);
    const auto row = cell[0].get<std::uint64_t>();
    const auto column = cell[1].get<std::uint64_t>();
    if (row >= column || column >= static_cast<std::uint64_t>(size)) {
      return invalid_input("{}: expected row < column < {}", where, size);
    }
    found.push_back({BlockNumber(row), BlockNumber(column), cell[2].get<std::uint64_t>()});
  }
  return BlockSharing(static_cast<std::uint32_t>(size), found);
}

}  // namespace demarc::sim
