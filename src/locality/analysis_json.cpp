// Writes an analysis as JSON; docs/locality.md lists the keys.
#include <algorithm>

#include "demarc/base/json.hpp"
#include "demarc/locality/analyse.hpp"

namespace demarc::locality {

std::string analysis_json(const Analysis& analysis, bool with_maps) {
  Json accesses = Json::array();
  for (const Access& access : analysis.all.accesses) {
    accesses.push_back({{"instruction", access.instruction},
                        {"line", access.line},
                        {"source_line", access.source_line},
                        {"space", access.space},
                        {"kind", to_string(access.kind)},
                        {"bytes", access.bytes},
                        {"expression", access.expression},
                        {"class", to_string(access.access_class)},
                        {"method", to_string(access.source)},
                        {"executed", access.executed},
                        {"requests", access.requests},
                        {"sectors_per_request", access.sectors_per_request}});
  }
  const auto map_json = [](const LocalityMap& map) {
    Json cells = Json::array();
    for (const MapCell& cell : map.cells) cells.push_back({cell.row, cell.column, cell.value});
    return Json{{"size", map.size}, {"bin", map.bin}, {"cells", std::move(cells)}};
  };
  Json inter = {{"degree_of_sharing", analysis.inter.degree_of_sharing},
                {"appearance_frequency", analysis.inter.appearance_frequency},
                {"spscore", analysis.inter.spscore},
                {"paver_degree_of_sharing", analysis.inter.paver_degree_of_sharing},
                {"sharing_blocks", analysis.inter.sharing_blocks},
                {"sharing_pairs", analysis.inter.sharing_pairs},
                {"places", analysis.inter.places},
                {"shared_places", analysis.inter.shared_places}};
  Json intra = {{"degree_of_sharing", analysis.intra.degree_of_sharing},
                {"appearance_frequency", analysis.intra.appearance_frequency},
                {"map_block", analysis.intra.map_block},
                {"distinct_blocks", analysis.intra.distinct_blocks}};
  if (with_maps) {
    inter["map"] = map_json(analysis.inter.map);
    inter["sets"] = Json::array();
    for (const SharedPlaces& set : analysis.inter.sets)
      inter["sets"].push_back({set.places, set.blocks});
    intra["map"] = map_json(analysis.intra.map);
  }
  const auto dim = [](const gpu::Dim3& d) { return Json::array({d.x, d.y, d.z}); };
  const auto counted =
      std::count_if(analysis.all.accesses.begin(), analysis.all.accesses.end(),
                    [&](const Access& access) { return access.kind == analysis.kind; });
  const Json json = {{"schema", "demarc.locality/1"},
                     {"kernel", analysis.kernel},
                     {"instance", analysis.instance},
                     {"grid", dim(analysis.grid)},
                     {"block", dim(analysis.block)},
                     {"threads", analysis.grid.count() * analysis.block.count()},
                     {"granularity", to_string(analysis.granularity)},
                     {"count", to_string(analysis.count)},
                     {"kind", to_string(analysis.kind)},
                     {"counted_instructions", counted},
                     {"method", to_string(analysis.method)},
                     {"accesses", std::move(accesses)},
                     {"inter", std::move(inter)},
                     {"intra", std::move(intra)},
                     {"trees", own_json(analysis.trees_json)},
                     {"left_out", analysis.left_out},
                     {"advice", analysis.advice},
                     {"findings", analysis.findings},
                     {"notes", analysis.notes}};
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::locality
