// Writes the evidence and verdict of a probed memory as JSON. What was not seen is null.
#include "demarc/base/json.hpp"
#include "demarc/base/version.hpp"
#include "demarc/probe/probe.hpp"

namespace demarc::probe {
namespace {

Json masks_json(std::span<const std::uint64_t> masks) {
  Json list = Json::array();
  for (const auto mask : masks) list.push_back(fmt::format("{:#x}", mask));
  return list;
}

// null: not known.
Json known(std::uint32_t number) {
  return number == 0 ? Json() : Json(number);
}

Json histogram_json(const Histogram& histogram) {
  return {{"low_cycles", histogram.low},
          {"bin_cycles", histogram.bin_width},
          {"counts", histogram.counts}};
}

Json hash_json(const HashFinding& finding) {
  return {{"decided", finding.decided},
          {"reason", finding.reason},
          {"masks", masks_json(finding.hash.rows)},
          {"timed_pairs", finding.measured},
          {"conflicts", finding.pairs},
          {"contradicting", finding.wrong_pairs},
          {"threshold_cycles", finding.threshold},
          {"ways", known(finding.decided ? finding.ways : 0)},
          {"confusion",
           {{"predicted_same_measured_same", finding.confusion.same_same},
            {"predicted_same_measured_other", finding.confusion.same_other},
            {"predicted_other_measured_same", finding.confusion.other_same},
            {"predicted_other_measured_other", finding.confusion.other_other}}},
          {"times", histogram_json(finding.times)}};
}

Json module_json(const ModuleFinding& finding) {
  Json curves = Json::object();
  for (const auto& curve : finding.curves) curves[curve.name] = curve.cycles;
  return {{"miss_registers", known(finding.miss_registers.number)},
          {"miss_registers_reason", finding.miss_registers.reason},
          {"isolated", finding.isolated ? Json(*finding.isolated) : Json()},
          {"cycles_by_other_threads", std::move(curves)}};
}

Json slices_json(const SliceFinding& finding) {
  const auto& model = finding.model;
  Json votes = Json::array();
  for (const auto& vote : model.votes) {
    votes.push_back({{"mask", fmt::format("{:#x}", vote.mask)}, {"share", vote.share}});
  }
  Json remainders;  // null: none
  if (finding.remainders) {
    remainders = {{"modulus", finding.remainders->stage.modulus},
                  {"number_masks", masks_json(finding.remainders->stage.number.rows)},
                  {"slices", finding.remainders->slices},
                  {"agreement", finding.remainders->agreement}};
  }
  return {{"decided", finding.decided},
          {"sms", model.sms},
          {"chunk_bytes", model.chunk_bytes},
          {"cluster_sizes", model.clusters.sizes},
          {"noise_cycles", model.clusters.noise},
          {"separation", model.clusters.separation},
          {"residual_histogram", model.clusters.residual_histogram},
          {"masks", masks_json(model.masks)},
          {"mask_votes", std::move(votes)},
          {"remainders", std::move(remainders)},
          {"slice_of_chunk", model.clusters.cluster}};
}

Json isolation_json(const gpu::MaskIsolation& entry) {
  return {{"dram_read", entry.dram_read},
          {"dram_write", entry.dram_write},
          {"l2_read", entry.l2_read},
          {"l2_write", entry.l2_write}};
}

Json conflicts_json(const ConflictFinding& finding) {
  Json masks = Json::array();
  for (const auto& entry : finding.masks) {
    masks.push_back({{"mask", fmt::format("{:#x}", entry.other.mask)},
                     {"other_colour", isolation_json(entry.other)},
                     {"same_colour", isolation_json(entry.same)},
                     {"isolates_dram_reads", entry.isolates_dram},
                     {"isolates", entry.isolates}});
  }
  return {{"masks", std::move(masks)},
          {"isolating", masks_json(finding.isolating)},
          {"isolating_dram_reads", masks_json(finding.isolating_dram)},
          {"modules", finding.modules}};
}

Json remainder_conflicts_json(const RemainderConflicts& conflicts) {
  return {{"group_of_remainder", conflicts.group_of},
          {"groups", conflicts.groups},
          {"least_slowdown_in_a_group", conflicts.least_same},
          {"most_slowdown_between_groups", conflicts.max_other},
          {"pages", conflicts.pages},
          {"uncertain_pages", conflicts.uncertain}};
}

Json windows_json(const WindowFinding& finding) {
  const auto& colors = finding.colors;
  return {{"possible", finding.known ? Json(colors.has_value()) : Json()},
          {"colours", colors ? Json(colors->colors) : Json()},
          {"granule_bytes", colors ? Json(colors->granule) : Json()},
          {"reason", colors ? Json() : Json(finding.reason)}};
}

}  // namespace

std::string report_to_json(const MemoryReport& report) {
  Json json{{"schema", report_schema},
            {"version", version()},
            {"revision", revision()},
            {"memory", report.facts.name},
            {"decided", report.decided},
            {"verdict", report.verdict},
            {"seconds", report.seconds},
            {"l2_bytes", report.facts.l2_bytes},
            {"modules", known(report.decided ? report.map.module.count() : 0)},
            {"slice_count", known(report.decided ? report.map.slices : 0)},
            {"module_masks", masks_json(report.map.module.rows)}};
  Json colors = Json::array();
  for (const auto& entry : report.colors) {
    colors.push_back({{"granularity_bytes", entry.granularity},
                      {"colours", entry.all},
                      {"colours_for_dram_reads", entry.dram}});
  }
  json["colours"] = std::move(colors);
  json["windows"] = windows_json(report.windows);
  if (report.bank) json["bank"] = hash_json(*report.bank);
  if (report.set) json["set"] = hash_json(*report.set);
  if (report.module) json["module"] = module_json(*report.module);
  if (report.slices) json["slices"] = slices_json(*report.slices);
  if (report.pages) {
    json["pages"] = {{"count", report.pages->constants.size()},
                     {"uncertain", report.pages->uncertain},
                     {"seconds", report.pages->seconds},
                     {"pages_per_constant", report.pages->pages_per_constant}};
  }
  if (report.conflicts) json["conflicts"] = conflicts_json(*report.conflicts);
  if (report.remainder_conflicts) {
    json["remainder_conflicts"] = remainder_conflicts_json(*report.remainder_conflicts);
  }
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::probe
