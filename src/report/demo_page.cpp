// Makes the tables, charts and words of the demonstration's page.
#include "demo_page.hpp"

#include <fmt/format.h>

#include <array>

#include "demarc/base/json.hpp"
#include "demarc/report/isolate_page.hpp"
#include "isolate_demo.hpp"

namespace demarc::report {
namespace {

constexpr std::array<PaperRow, 10> table_2{{
    {"kmeans", "invert_mapping", 49, 1, 256, 1, 5,
     "both degrees of sharing above the hit rates; inter degree about 30 points off the L2 rate",
     "section 4.4, Figures 8 and 9"},
    {"convsep", "convolution_rows", 1, 32, 16, 4, 20,
     "L1 hit rate 0 %; inter degree above the L2 hit rate by about 30 points",
     "section 4.4, Figures 8 and 9"},
    {"convsep", "convolution_columns", 8, 2, 16, 8, 20, "", ""},
    {"backprop", "adjust_weights", 1, 64, 16, 16, 20,
     "inter degree 5.65 points off the L2 hit rate", "section 4.4, Figure 8"},
    {"backprop", "layer_forward", 1, 64, 16, 16, 20, "", ""},
    {"leukocyte", "imgvf", 36, 1, 320, 1, 10, "inter degree about 30 points below the L2 hit rate",
     "section 4.4, Figure 8"},
    {"bfs", "bfs_expand", 128, 1, 512, 1, 14, "degree and hit rate are hardly related",
     "section 4.4, Figure 8"},
    {"bfs", "bfs_advance", 128, 1, 512, 1, 14, "", ""},
    {"hotspot", "calculate_temp", 43, 43, 16, 16, 1,
     "both degrees above the hit rates; about 30 points off the L2 rate",
     "section 4.4, Figures 8 and 9"},
    {"scan", "scan_exclusive_shared2", 26, 1, 256, 1, 2,
     "the only workload with an L2 hit rate below 60 %", "section 4.4, Figure 8"},
}};

std::string label_of(const LocalityStudy& study) {
  return study.name + " / " + study.analysis.kernel;
}

std::int64_t loads_of(const LocalityStudy& study) {
  std::int64_t count = 0;
  for (const locality::Access& access : study.analysis.all.accesses)
    count += access.kind == locality::AccessKind::load ? 1 : 0;
  return count;
}

// The loads of all kernels of a workload, as Table 2 counts them.
std::int64_t workload_loads(const std::vector<LocalityStudy>& studies, const std::string& name) {
  std::int64_t count = 0;
  for (const LocalityStudy& study : studies)
    if (study.name == name) count += loads_of(study);
  return count;
}

// What was launched: Table 2 of the paper.
Table launch_table(const std::vector<LocalityStudy>& studies) {
  Table table{
      "The kernels, with the grids of the paper's Table 2; its count of ld.global is for the "
      "whole workload, as is ours under \"all\"",
      {{"workload"},
       {"kernel"},
       {"grid", Align::right},
       {"block", Align::right},
       {"threads", Align::right},
       {"ld.global", Align::right},
       {"all", Align::right},
       {"paper", Align::right},
       {"method"}},
      {}};
  for (std::size_t i = 0; i < studies.size(); ++i) {
    const LocalityStudy& study = studies[i];
    const locality::Analysis& a = study.analysis;
    const std::int64_t all_loads = workload_loads(studies, study.name);
    table.rows.push_back(
        {study.name, a.kernel, fmt::format("{}x{}", a.grid.x, a.grid.y),
         fmt::format("{}x{}", a.block.x, a.block.y),
         count_cell(static_cast<std::int64_t>(a.grid.count() * a.block.count())),
         count_cell(loads_of(study)),
         count_cell(all_loads, all_loads == table_2[i].loads ? Tone::good : Tone::plain),
         count_cell(table_2[i].loads), locality::to_string(a.method)});
  }
  return table;
}

Table index_table(const std::vector<LocalityStudy>& studies) {
  Table table{
      "Degree of sharing (dos), appearance frequency and SpScore of every kernel, and its "
      "predicted hit rates",
      {{"kernel"},
       {"inter dos", Align::right},
       {"inter freq.", Align::right},
       {"intra dos", Align::right},
       {"intra freq.", Align::right},
       {"SpScore", Align::right},
       {"L1 hit", Align::right},
       {"L2 hit", Align::right}},
      {}};
  for (const LocalityStudy& study : studies) {
    const locality::Analysis& a = study.analysis;
    table.rows.push_back({a.kernel, digits_cell(a.inter.degree_of_sharing),
                          digits_cell(a.inter.appearance_frequency),
                          digits_cell(a.intra.degree_of_sharing),
                          digits_cell(a.intra.appearance_frequency), digits_cell(a.inter.spscore),
                          percent_cell(study.sensitivity.whole.l1_hit_rate),
                          percent_cell(study.sensitivity.whole.l2_hit_rate)});
  }
  return table;
}

Chart rate_chart(const std::vector<LocalityStudy>& studies, bool l2) {
  Chart chart;
  chart.title = l2 ? "Inter-block degree of sharing and predicted L2 hit rate"
                   : "Intra-block degree of sharing and predicted L1 hit rate";
  chart.caption =
      l2 ? "The question of the paper's Figure 8." : "The question of the paper's Figure 9.";
  chart.y = {.name = "share", .low = 0, .high = 1};
  Series degree{"degree of sharing", SeriesKind::bar, {}};
  Series frequency{"appearance frequency", SeriesKind::bar, {}};
  Series rate{l2 ? "L2 hit rate, predicted" : "L1 hit rate, predicted", SeriesKind::bar, {}};
  for (const LocalityStudy& study : studies) {
    const double x = static_cast<double>(chart.x.categories.size());
    chart.x.categories.push_back(study.analysis.kernel);
    const locality::Analysis& a = study.analysis;
    degree.points.push_back(
        {.x = x, .y = l2 ? a.inter.degree_of_sharing : a.intra.degree_of_sharing});
    frequency.points.push_back(
        {.x = x, .y = l2 ? a.inter.appearance_frequency : a.intra.appearance_frequency});
    rate.points.push_back(
        {.x = x,
         .y = l2 ? study.sensitivity.whole.l2_hit_rate : study.sensitivity.whole.l1_hit_rate});
  }
  chart.series = {degree, frequency, rate};
  return chart;
}

Table sensitivity_table(const std::vector<LocalityStudy>& studies) {
  Table table{
      "What each kernel would lose with half the L2, and what it takes from a neighbour, by a "
      "model of bandwidths and latencies; a kernel that computes much demands less",
      {{"workload"},
       {"kernel"},
       {"L2 hit, half L2", Align::right},
       {"DRAM bytes", Align::right},
       {"DRAM bytes, half L2", Align::right},
       {"time, us", Align::right},
       {"slowdown, half L2", Align::right},
       {"DRAM demand", Align::right}},
      {}};
  for (const LocalityStudy& study : studies) {
    const locality::Sensitivity& s = study.sensitivity;
    table.rows.push_back({study.name, study.analysis.kernel, percent_cell(s.half.l2_hit_rate),
                          count_cell(static_cast<std::int64_t>(s.whole.dram_bytes)),
                          count_cell(static_cast<std::int64_t>(s.half.dram_bytes)),
                          digits_cell(s.time_s * 1e6), times_text(s.half_l2_slowdown),
                          percent_cell(s.dram_demand_share)});
  }
  return table;
}

Table translation_table(const std::vector<LocalityStudy>& studies) {
  Table table{fmt::format("Pages of 4 KiB when the blocks are split over {} GPUs in contiguous "
                          "parts, and the translation architecture this speaks for",
                          demo_gpus),
              {{"workload"},
               {"kernel"},
               {"pages", Align::right},
               {"shared accesses", Align::right},
               {"pages come back to", Align::right},
               {"prefers"}},
              {}};
  for (const LocalityStudy& study : studies) {
    if (study.pages.empty()) continue;
    const locality::PageSplit& split = study.pages.front();
    const locality::TranslationVerdict verdict = locality::judge_translation(split);
    table.rows.push_back(
        {study.name, study.analysis.kernel, count_cell(static_cast<std::int64_t>(split.pages)),
         percent_cell(split.shared_access_share), percent_cell(verdict.local_return_share),
         locality::to_string(verdict.architecture)});
  }
  return table;
}

Table remark_table() {
  Table remarks{"What the paper reports of its A30", {{"workload"}, {"remark"}, {"place"}}, {}};
  for (const PaperRow& row : table_2)
    if (*row.remark != 0) remarks.rows.push_back({row.workload, row.remark, row.place});
  return remarks;
}

// The part of the page on one kernel.
void add_study(Page& page, const LocalityStudy& study) {
  page.begin_section(label_of(study));
  add_locality_summary(page, study);
  add_locality_maps(page, study);
  page.begin_section("Syntax trees of " + label_of(study), true);
  add_syntax_trees(page, study);
  page.end_section();
  page.end_section();
}

// Both studies whole: the documents of demarc isolate and of demarc locality.
std::string json_of(const DemoOptions& options, const study::StudyResult& isolate,
                    const std::vector<LocalityStudy>& studies) {
  Json locality = Json::array();
  for (const LocalityStudy& study : studies) {
    Json one = own_json(locality_json(study, false));
    one["workload"] = study.name;
    locality.push_back(std::move(one));
  }
  const Json json = {{"schema", "demarc.demo/2"},
                     {"isolate", own_json(study::study_json(isolate, options.command))},
                     {"locality", std::move(locality)}};
  return json_text(json, 2) + "\n";
}

std::string interference_page(const DemoOptions& options, const study::StudyResult& isolate) {
  Page page("Interference of co-located kernels, simulated", study_subtitle(isolate));
  if (!options.locality_link.empty()) {
    page.link(options.locality_link, "Data locality of seven workloads");
  }
  add_isolate_study(page, isolate, std::string(isolate_demo_command));
  page.prose(
      "Every kernel is emulated from its PTX, and the simulated memory system times its memory "
      "accesses. Simulated colours isolate by construction: two colours have no slice and no "
      "channel in common, and nothing else is modelled that they could share. On a card more is "
      "shared.");
  Context context = study_context(isolate, options.command);
  page.context(context);
  return page.html();
}

std::string locality_page(const DemoOptions& options, const std::vector<LocalityStudy>& studies) {
  Page page("Data locality of seven workloads", studies.front().device + " (a description)");
  if (!options.interference_link.empty()) {
    page.link(options.interference_link, "Interference of co-located kernels");
  }
  page.heading("Indices");
  page.prose(
      std::string(degree_of_sharing_words) +
      " Degree of sharing (dos) and appearance frequency after KNOM Review 2022, section III: "
      "between thread blocks (inter) and between the threads of a block (intra), for global "
      "loads at element granularity, every address exact. Hit rates are predicted for " +
      studies.front().device +
      ", loads and stores together. The kernels are equivalents written for this project; "
      "`docs/locality.md` says where counts and indices differ from the paper and why.");
  page.table(launch_table(studies));
  page.table(index_table(studies));
  page.table(remark_table());
  page.chart(rate_chart(studies, true));
  page.chart(rate_chart(studies, false));
  page.heading("Sensitivity");
  page.table(sensitivity_table(studies));
  page.heading("Several GPUs");
  page.table(translation_table(studies));
  page.heading("Kernel by kernel");
  for (const LocalityStudy& study : studies) add_study(page, study);
  page.context({.command = options.command,
                .devices = {{studies.front().device + " (a description)"}},
                .seed = fmt::format("{} (contents of buffers)", studies.front().seed)});
  return page.html();
}

}  // namespace

std::span<const PaperRow> paper_rows() {
  return table_2;
}

Result<void> check_grid(const LocalityStudy& study, const PaperRow& row) {
  const locality::Analysis& a = study.analysis;
  if (a.grid.x != row.grid_x || a.grid.y != row.grid_y || a.block.x != row.block_x ||
      a.block.y != row.block_y) {
    return check_failed("{}: launched with {}x{} blocks of {}x{} threads, not with {}x{} of {}x{}",
                        label_of(study), a.grid.x, a.grid.y, a.block.x, a.block.y, row.grid_x,
                        row.grid_y, row.block_x, row.block_y);
  }
  return {};
}

Demo demo_of(const DemoOptions& options, const study::StudyResult& isolate,
             const std::vector<LocalityStudy>& studies) {
  return Demo{interference_page(options, isolate), locality_page(options, studies),
              study::study_text(isolate) + "\n" + plain_text(launch_table(studies)) + "\n" +
                  plain_text(index_table(studies)),
              json_of(options, isolate, studies), study::check_possible(isolate)};
}

}  // namespace demarc::report
