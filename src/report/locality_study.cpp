// Studies the locality of one launch, and prints the study as text and as JSON.
#include <fmt/format.h>

#include "demarc/base/json.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/report/locality_page.hpp"

namespace demarc::report {
namespace {

Json prediction_json(const locality::CachePrediction& one) {
  const auto interval = [&one](const locality::RateInterval& of) {
    return one.complete ? Json() : Json::array({of.low, of.high});
  };
  return {{"l1_interval", interval(one.l1_interval)},
          {"l2_interval", interval(one.l2_interval)},
          {"requests", one.requests},
          {"l1_hit_rate", one.l1_hit_rate},
          {"l2_hit_rate", one.l2_hit_rate},
          {"l2_read_hit_rate", one.l2_read_hit_rate},
          {"l1_sectors", one.l1_sectors},
          {"l2_sectors", one.l2_sectors},
          {"l2_read_sectors", one.l2_read_sectors},
          {"dram_bytes", one.dram_bytes},
          {"dram_read_bytes", one.dram_read_bytes},
          {"sms", one.sms},
          {"blocks_per_sm", one.blocks_per_sm},
          {"complete", one.complete}};
}

}  // namespace

std::string missing_for_prediction(const gpu::Device& device) {
  std::string missing;
  const auto need = [&missing](bool there, const char* what) {
    if (!there) missing += (missing.empty() ? "" : ", ") + std::string(what);
  };
  need(device.l2.size_bytes > 0, "the size of the L2 (l2.size_bytes)");
  need(device.dram.bandwidth_bytes_per_s > 0,
       "the bandwidth of the DRAM (dram.bandwidth_bytes_per_s)");
  if (missing.empty()) return {};
  return fmt::format("no hit rates are predicted: the description of {} lacks {}", device.name,
                     missing);
}

std::string incomplete_prediction(const LocalityStudy& study) {
  if (!study.no_prediction.empty() ||
      (study.sensitivity.whole.complete && study.sensitivity.half.complete))
    return {};
  const locality::CachePrediction& whole = study.sensitivity.whole;
  return fmt::format(
      "the hit rates are those of the first {} requests of warps; the launch makes more. In tenths "
      "of them L1 is between {:.1f} and {:.1f} %, L2 between {:.1f} and {:.1f} %",
      grouped(static_cast<std::int64_t>(whole.requests)), 100 * whole.l1_interval.low,
      100 * whole.l1_interval.high, 100 * whole.l2_interval.low, 100 * whole.l2_interval.high);
}

Result<gpu::Device> described_device(std::string_view device) {
  DEMARC_TRY(const auto simulated,
             gpu::parse_ref_as<gpu::SimulatedRef>(
                 device, "predictions are made for a description of a device; use sim:NAME"));
  return gpu::find_device(simulated.name);
}

Result<LocalityStudy> study_locality(const std::string& ptx, const std::string& ptx_name,
                                     const gpu::Launch& launch, const locality::Options& options,
                                     const std::string& device, std::uint32_t gpus) {
  DEMARC_TRY(const gpu::Device described, described_device(device));
  DEMARC_TRY(const ptx::Module module, ptx::parse_whole(ptx, ptx_name));
  LocalityStudy study;
  study.name = launch.name.empty() ? ptx_name : launch.name;
  study.device = described.name;
  study.seed = launch.seed;
  DEMARC_TRY(study.analysis, locality::analyse(module, launch, options));
  locality::PredictOptions predict;
  std::uint32_t instance = 0;
  for (const gpu::KernelLaunch& kernel : launch.kernels)
    if (kernel.kernel == study.analysis.kernel && instance++ == study.analysis.instance)
      predict.shared_bytes_per_block = locality::shared_bytes_of(module, kernel);
  study.no_prediction = missing_for_prediction(described);
  if (study.no_prediction.empty())
    study.sensitivity = locality::predict_sensitivity(study.analysis.all, described, predict);
  DEMARC_CHECK(locality::check_rates(study.sensitivity));
  if (gpus > 1)
    for (const std::uint64_t page :
         {std::uint64_t{4096}, std::uint64_t{65536}, std::uint64_t{2097152}})
      study.pages.push_back(locality::split_pages(study.analysis.all, gpus, page));
  return study;
}

std::string locality_json(const LocalityStudy& study, bool with_maps) {
  Json json = own_json(locality::analysis_json(study.analysis, with_maps));
  const locality::Sensitivity& s = study.sensitivity;
  if (!study.no_prediction.empty())
    json["prediction"] = {{"device", study.device}, {"left_out", study.no_prediction}};
  else
    json["prediction"] = {{"device", study.device},
                          {"whole_l2", prediction_json(s.whole)},
                          {"half_l2", prediction_json(s.half)},
                          {"least_time_s", s.time_s},
                          {"half_l2_slowdown", s.half_l2_slowdown},
                          {"half_memory_slowdown", s.half_memory_slowdown},
                          {"dram_demand_bytes_per_s", s.dram_demand_bytes_s},
                          {"dram_demand_share", s.dram_demand_share}};
  Json pages = Json::array();
  for (const locality::PageSplit& split : study.pages)
    pages.push_back(
        {{"page_bytes", split.page_bytes},
         {"gpus", split.gpus},
         {"pages", split.pages},
         {"pages_by_sharers", split.pages_by_sharers},
         {"shared_access_share", split.shared_access_share},
         {"remote_access_share", split.remote_access_share},
         {"first_touches", split.first_touches},
         {"returns", split.returns},
         {"local_returns", split.local_returns},
         {"prefers", locality::to_string(locality::judge_translation(split).architecture)}});
  if (!study.pages.empty()) json["pages"] = std::move(pages);
  return json_text(json, 2) + "\n";
}

std::string locality_text(const LocalityStudy& study) {
  const locality::Analysis& a = study.analysis;
  std::string out = fmt::format(
      "{}: kernel {}, {}x{}x{} blocks of {}x{}x{} threads, method {}, granularity {}, count {}\n\n",
      study.name, a.kernel, a.grid.x, a.grid.y, a.grid.z, a.block.x, a.block.y, a.block.z,
      locality::to_string(a.method), locality::to_string(a.granularity),
      locality::to_string(a.count));
  Table accesses{"Global accesses",
                 {{"line", Align::right},
                  {"kind"},
                  {"address"},
                  {"class"},
                  {"executed", Align::right},
                  {"sectors/request", Align::right},
                  {"from"}},
                 {}};
  for (const locality::Access& access : a.all.accesses)
    accesses.rows.push_back({count_cell(access.line), to_string(access.kind), access.expression,
                             locality::to_string(access.access_class),
                             count_cell(static_cast<std::int64_t>(access.executed)),
                             number_cell(access.sectors_per_request, 2),
                             locality::to_string(access.source)});
  out += plain_text(accesses) + "\n";
  Table indices{fmt::format("Indices ({}s)", to_string(a.kind)),
                {{"index"}, {"between blocks", Align::right}, {"between threads", Align::right}},
                {}};
  indices.rows.push_back({"degree of sharing", number_cell(a.inter.degree_of_sharing, 6),
                          number_cell(a.intra.degree_of_sharing, 6)});
  indices.rows.push_back({"appearance frequency", number_cell(a.inter.appearance_frequency, 6),
                          number_cell(a.intra.appearance_frequency, 6)});
  indices.rows.push_back({"SpScore", number_cell(a.inter.spscore, 6)});
  indices.rows.push_back(
      {"PAVER degree of sharing", number_cell(a.inter.paver_degree_of_sharing, 4)});
  out += plain_text(indices) + "\n";
  const locality::Sensitivity& s = study.sensitivity;
  if (!study.no_prediction.empty())
    out += "note: " + study.no_prediction + "\n";
  else
    out += fmt::format(
        "Predicted for {}: L1 hit rate {:.1f} %, L2 hit rate {:.1f} % ({:.1f} % with "
        "half the L2)\nDRAM traffic {} bytes; asks for {:.1f} % of the DRAM bandwidth\n"
        "with half the L2 {:.2f}x as long; on half of the SMs, with half of the L2 and of the "
        "bandwidths, {:.2f}x as long as with all of them\n",
        study.device, 100 * s.whole.l1_hit_rate, 100 * s.whole.l2_hit_rate,
        100 * s.half.l2_hit_rate, grouped(static_cast<std::int64_t>(s.whole.dram_bytes)),
        100 * s.dram_demand_share, s.half_l2_slowdown, s.half_memory_slowdown);
  if (const std::string partial = incomplete_prediction(study); !partial.empty())
    out += "note: " + partial + "\n";
  for (const locality::PageSplit& split : study.pages)
    out += fmt::format(
        "{} GPUs, pages of {} bytes: {} pages, {:.1f} % of accesses to shared pages, "
        "{:.1f} % remote at best; prefers {} translation\n",
        split.gpus, split.page_bytes, split.pages, 100 * split.shared_access_share,
        100 * split.remote_access_share,
        locality::to_string(locality::judge_translation(split).architecture));
  for (const std::string& one : a.advice) out += "advice: " + one + "\n";
  for (const std::string& finding : a.findings) out += "finding: " + finding + "\n";
  for (const std::string& note : a.notes) out += "note: " + note + "\n";
  return out;
}

}  // namespace demarc::report
