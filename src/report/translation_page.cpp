// Makes the page of a translation study: the paper's figures, claims and settings.
#include "demarc/report/translation_page.hpp"

#include <algorithm>

#include "translation_cells.hpp"

namespace demarc::report {
namespace {

using sim::Published;
using sim::translation::ApplicationResult;
using sim::translation::Claim;
using sim::translation::Comparison;
using sim::translation::Study;
using sim::translation::StudyRun;
using sim::translation::Summary;

// Only where the paper's text names a number of one application.
template <class Quantity>
Series paper_points(const Comparison& comparison, Quantity quantity) {
  Series series{"paper", SeriesKind::scatter, {}};
  for (std::size_t i = 0; i < comparison.apps.size(); ++i) {
    const Published* said = quantity(comparison.apps[i].name);
    if (said == nullptr) continue;
    series.points.push_back({static_cast<double>(i), said->value, {}, {}, comparison.apps[i].name});
  }
  return series;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add_figure_4(Page& page, const Comparison& c) {
  page.heading("Figure 4: speed-up over the centralised architecture");
  Chart chart{
      .title = "Cycles of the centralised architecture over cycles of each",
      .caption =
          "The text names KM 4.81, ST 5.18 (the largest), a mean of 2.0, and the "
          "centralised architecture ahead by 8 % on average in RL, FIR and MP.",
      .x = app_axis(c),
      .y = {.name = "speed-up"},
      .lines = {{"the paper's mean", sim::translation_paper::mean_speedup.value}, {"equal", 1.0}}};
  for (std::size_t i = 1; i < c.architectures.size(); ++i) {
    chart.series.push_back(
        app_bars(c, std::string(to_string(c.architectures[i])),
                 [i](const ApplicationResult& app) { return Comparison::speedup(app, i); }));
  }
  chart.series.push_back(paper_points(c, sim::translation::published_speedup));
  page.chart(chart);
}

void add_figure_5(Page& page, const Comparison& c) {
  page.heading("Figure 5: where translation requests hit");
  page.prose(
      "A request is one line access. The two levels of TLB count as one; a request for a page that "
      "is already being fetched counts as a hit. The paper says that both architectures are nearly "
      "the same here and that FIR, MP, AES and FFT are extremely high.");
  Table table;
  table.caption = "Per cent of all requests, centralised and distributed";
  table.columns = {{"app"},
                   {"TLB, C", Align::right},
                   {"TLB, D", Align::right},
                   {"GMMU, D", Align::right},
                   {"IOMMU, C", Align::right},
                   {"IOMMU, D", Align::right}};
  for (const ApplicationResult& app : c.apps) {
    const Summary& centralised = app.summaries[0];
    const Summary& distributed = app.summaries[1];
    const auto percent = [](std::uint64_t part, const Summary& of) {
      return digits_cell(share_percent(part, of.l1_tlb.lookups()));
    };
    table.rows.push_back({app.name, digits_cell(100 * centralised.tlb_hit_share()),
                          digits_cell(100 * distributed.tlb_hit_share()),
                          percent(distributed.gmmu_hits, distributed),
                          percent(centralised.iommu_accesses, centralised),
                          percent(distributed.iommu_accesses, distributed)});
  }
  page.chart({.title = "TLB-hit share",
              .x = app_axis(c),
              .y = {.name = "requests that hit", .unit = "%", .low = 80.0, .high = 100.0},
              .series = {app_bars(c, "centralised",
                                  [](const ApplicationResult& app) {
                                    return 100 * app.summaries[0].tlb_hit_share();
                                  }),
                         app_bars(c, "distributed", [](const ApplicationResult& app) {
                           return 100 * app.summaries[1].tlb_hit_share();
                         })}});
  page.table(table);
}

void add_figure_6(Page& page, const Comparison& c) {
  page.heading("Figure 6: which component answers the misses of the L2 TLB");
  page.chart({.title = "Answered by the GPU's own GMMU, distributed architecture",
              .caption = "The rest goes to the IOMMU. The paper: IOMMU accesses of MT, KM, FFT and "
                         "ST fall by 68.3 % on average, those of ST by 90 %; nearly all of RL, FIR "
                         "and MP go to the IOMMU.",
              .x = app_axis(c),
              .y = {.name = "misses", .unit = "%", .low = 0.0, .high = 100.0},
              .series = {app_bars(c, "GMMU hits",
                                  [](const ApplicationResult& app) {
                                    return 100 * app.summaries[1].gmmu_hit_share();
                                  }),
                         app_bars(c, "fewer IOMMU accesses than centralised",
                                  [](const ApplicationResult& app) {
                                    return 100 - share_percent(app.summaries[1].iommu_accesses,
                                                               app.summaries[0].iommu_accesses);
                                  }),
                         paper_points(c, [](std::string_view name) {
                           return name == "ST" ? &sim::translation_paper::fewer_iommu_st : nullptr;
                         })}});
  Table table;
  table.caption =
      "Why requests reach the IOMMU: first touches of a page, and pages of other GPUs, apart";
  table.columns = {{"app"},
                   {"IOMMU accesses, C", Align::right},
                   {"IOMMU accesses, D", Align::right},
                   {"first touches", Align::right},
                   {"remote-owned, D", Align::right},
                   {"remote lines, D %", Align::right}};
  for (const ApplicationResult& app : c.apps) {
    const Summary& d = app.summaries[1];
    table.rows.push_back({app.name,
                          count_cell(static_cast<std::int64_t>(app.summaries[0].iommu_accesses)),
                          count_cell(static_cast<std::int64_t>(d.iommu_accesses)),
                          count_cell(static_cast<std::int64_t>(d.first_touches)),
                          count_cell(static_cast<std::int64_t>(d.remote_owned)),
                          digits_cell(share_percent(d.remote_lines, d.lines))});
  }
  page.table(table);
}

void add_figure_7(Page& page, const Comparison& c) {
  page.heading("Figure 7: page walks");
  const auto ratio = [](const ApplicationResult& app, std::size_t i) {
    return share_percent(app.summaries[i].walks(), app.summaries[0].walks()) / 100;
  };
  Chart chart{.title = "Walks of all MMUs, over those of the centralised architecture",
              .caption = "The paper: twice as many for RL, FIR and MP, 67 % more on average.",
              .x = app_axis(c),
              .y = {.name = "walks", .low = 0.0},
              .lines = {{"the paper's mean", 1 + sim::translation_paper::more_walks.value / 100}}};
  for (std::size_t i = 1; i < c.architectures.size(); ++i) {
    chart.series.push_back(
        app_bars(c, std::string(to_string(c.architectures[i])),
                 [&ratio, i](const ApplicationResult& app) { return ratio(app, i); }));
  }
  chart.series.push_back(paper_points(c, [](std::string_view name) {
    return is_one_of(name, {"RL", "FIR", "MP"}) ? &sim::translation_paper::double_walks : nullptr;
  }));
  page.chart(chart);
}

void add_conclusions(Page& page, const Comparison& c) {
  page.heading("What decides");
  page.prose(
      "The paper concludes that the sign of the difference follows the share of L2-TLB misses that "
      "are local, and its size the number of misses. One point per application.");
  Series sign{"application", SeriesKind::scatter, {}};
  Series size = sign;
  for (const ApplicationResult& app : c.apps) {
    const double faster = Comparison::speedup(app, 1);
    const Summary& d = app.summaries[1];
    sign.points.push_back({100 * d.gmmu_hit_share(), faster, {}, {}, app.name});
    size.points.push_back({share_percent(d.l2_tlb.misses, d.lines), faster, {}, {}, app.name});
  }
  page.chart({.title = "Sign: share of L2-TLB misses that the GMMU answers",
              .x = {.name = "GMMU hits", .unit = "%"},
              .y = {.name = "speed-up of D over C"},
              .series = {sign},
              .lines = {{"equal", 1.0}}});
  page.chart({.title = "Size: L2-TLB misses of all line accesses",
              .x = {.name = "L2-TLB misses", .unit = "%"},
              .y = {.name = "speed-up of D over C"},
              .series = {size},
              .lines = {{"equal", 1.0}}});
}

Table claims_table(const Comparison& c, const std::string& caption) {
  Table table;
  table.caption = caption;
  table.columns = {{"figure"},
                   {"paper", Align::right},
                   {"place"},
                   {"ours", Align::right},
                   {"within", Align::right},
                   {"reproduced"},
                   {"fitted settings"}};
  for (const Claim& claim : claims_of(c)) {
    if (claim.paper == nullptr) continue;
    table.rows.push_back({claim.name, std::string(claim.paper->words),
                          std::string(claim.paper->place),
                          digits_cell(claim.ours, claim.holds() ? Tone::good : Tone::bad),
                          claim.range(), claim.holds() ? "yes" : "no", claim.fitted});
  }
  return table;
}

Table expectations_table(const Comparison& c) {
  Table table;
  table.caption = "Not in the paper";
  table.columns = {{"figure"},
                   {"expected, and by whom"},
                   {"ours", Align::right},
                   {"within", Align::right},
                   {"holds"}};
  for (const Claim& claim : claims_of(c)) {
    if (claim.paper != nullptr) continue;
    table.rows.push_back({claim.name, claim.elsewhere,
                          digits_cell(claim.ours, claim.holds() ? Tone::good : Tone::bad),
                          claim.range(), claim.holds() ? "yes" : "no"});
  }
  return table;
}

void add_settings(Page& page, const Study& study) {
  page.heading("Under each plausible setting");
  page.prose(
      "The paper leaves the split of the work, the size of the L2 TLB, the cost of a first touch "
      "and more unsaid. Each row changes one of them; none was left out because it does not fit.");
  HeatMap map{.title = "Speed-up of the distributed over the centralised architecture",
              .row_name = "setting",
              .column_name = "application",
              .value_name = "times as fast",
              .high = 6.0,
              .middle = 1.0,
              .decimals = 2};
  Table table;
  table.caption = "What of the paper's figures is reproduced under each setting";
  table.columns = {{"setting"}, {"meaning"}, {"reproduced", Align::right}};
  for (const StudyRun& run : study.runs) {
    if (run.variant.bypass_only) continue;
    const Comparison& c = run.comparison;
    if (map.column_labels.empty()) map.column_labels = app_axis(c).categories;
    const auto row = static_cast<std::uint32_t>(map.row_labels.size());
    map.row_labels.push_back(run.variant.name);
    for (std::size_t i = 0; i < c.apps.size(); ++i)
      map.cells.push_back({row, static_cast<std::uint32_t>(i), Comparison::speedup(c.apps[i], 1)});
    table.rows.push_back(
        {run.variant.name, run.variant.meaning, sim::reproduced_text(claims_of(c))});
  }
  map.rows = static_cast<std::uint32_t>(map.row_labels.size());
  map.columns = static_cast<std::uint32_t>(map.column_labels.size());
  page.heat_map(map);
  page.table(table);
  for (const StudyRun& run : study.runs) {
    if (run.variant.bypass_only || &run == &study.runs.front()) continue;
    page.begin_section(run.variant.name, true);
    page.table(claims_table(run.comparison, run.variant.meaning));
    page.end_section();
  }
}

void add_bypass(Page& page, const Study& study) {
  const Comparison& base = study.runs.front().comparison;
  if (base.architectures.size() < 3) return;
  page.heading("Dynamic bypass of the GMMU");
  page.prose(
      "The paper's outlook, with policies of our own: `residency` keeps a counting Bloom filter of "
      "the pages that the local table knows, `epoch` skips while the hit share of the last epoch "
      "was low, `oracle` knows the table (the upper bound). Cycles of the better of the two "
      "architectures over cycles of the bypass: 1 is as good as the better one.");
  Table table;
  table.columns = {{"policy"}};
  for (const ApplicationResult& app : base.apps) table.columns.push_back({app.name, Align::right});
  for (const StudyRun& run : study.runs) {
    const bool first = &run == &study.runs.front();
    if (!first && !run.variant.bypass_only) continue;
    std::vector<Cell> row{first ? Cell("residency") : Cell(run.variant.name)};
    for (std::size_t i = 0; i < base.apps.size(); ++i) {
      const auto& of = base.apps[i].summaries;
      const double better = static_cast<double>(std::min(of[0].cycles, of[1].cycles).raw());
      const double ours =
          better / static_cast<double>(run.comparison.apps[i].summaries.back().cycles.raw());
      row.push_back(digits_cell(ours, ours >= 0.98 ? Tone::good : Tone::bad));
    }
    table.rows.push_back(std::move(row));
  }
  page.table(table);
}

}  // namespace

std::string translation_study_page(const Study& study, const std::string& command) {
  const Comparison& c = study.runs.front().comparison;
  Page page("Address translation in multi-GPU systems: the paper's figures and ours",
            "Wei, Li and Lu 2021, Figures 4 to 7");
  const auto claims = claims_of(c);
  const bool all_hold = std::all_of(claims.begin(), claims.end(), [](const Claim& claim) {
    return claim.paper == nullptr || claim.holds();
  });
  std::vector<KeyFigure> figures{
      {"Reproduced", sim::reproduced_text(claims), "figures of the paper",
       all_hold ? Tone::good : Tone::warning},
      {"Mean speed-up, D over C", times_text(c.mean_speedup(1)),
       fmt::format("the paper: {}", sim::translation_paper::mean_speedup.words)}};
  for (const ApplicationResult& app : c.apps) {
    if (const Published* said = sim::translation::published_speedup(app.name)) {
      figures.push_back({app.name, times_text(Comparison::speedup(app, 1)),
                         fmt::format("the paper: {}", said->words)});
    }
  }
  page.heading("Result");
  page.key_figures(figures);
  page.prose(
      "Speed-up: cycles of the centralised architecture over cycles of another; 1.00 is as fast. "
      "A simulation on queues and finite resources, not a measurement of hardware. C is the "
      "centralised architecture (one IOMMU), D the distributed one (a GMMU on each GPU first). The "
      "bars of the paper's figures are not in its text; points and lines show the numbers that "
      "it names.");
  page.table(claims_table(
      c, fmt::format("The paper's figures and ours, default settings. A number is reproduced if "
                     "ours lies within {:.0f} % of it; the limits of statements are ours.",
                     100 * sim::translation::reproduced_within)));
  page.table(expectations_table(c));
  add_figure_4(page, c);
  add_figure_5(page, c);
  add_figure_6(page, c);
  add_figure_7(page, c);
  add_conclusions(page, c);
  add_bypass(page, study);
  add_settings(page, study);
  page.context(translation_context(c.settings, command));
  return page.html();
}

}  // namespace demarc::report
