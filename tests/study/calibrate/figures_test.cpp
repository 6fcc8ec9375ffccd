// The table of figures, and figures in files.
#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate/calibrate_fixture.hpp"
#include "calibrate/figure_rows.hpp"
#include "calibrate/parameters.hpp"
#include "calibrate/solo_simulation.hpp"
#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"

namespace demarc::study {
namespace {

using testing::HasSubstr;

TEST(FigureTable, has_every_figure_once_and_parameters_name_those_that_exist) {
  std::set<std::string_view> names;
  for (const FigureRow& row : figure_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const auto sizes = row.sizes(tiny_card());
    EXPECT_GT(row.work(sizes, tiny_card()), 0) << row.name;
    EXPECT_TRUE(row.repeats.empty() || sizes.contains(std::string(row.repeats))) << row.name;
  }
  for (const ParameterRow& row : parameter_rows()) {
    for (const std::string_view figure : row.figures) {
      EXPECT_TRUE(figure.empty() || names.contains(figure)) << row.name;
    }
  }
}

TEST(FigureTable, sets_of_a_parameter_are_what_it_gets) {
  for (const ParameterRow& row : parameter_rows()) {
    gpu::Device device = gpu::find_device("h100-sxm").value();
    const double value = std::round(std::sqrt(std::max(row.low, 1.0) * row.high));
    row.set(device, value);
    EXPECT_EQ(row.get(device), value) << row.name;
  }
}

// A kernel that streams beyond the L2 meets twice as much as the L2 holds before it comes back.
TEST(FigureTable, repetitions_go_beyond_twice_the_l2) {
  for (const char* const name : {"gtx1080", "h100-sxm", "h200"}) {
    const gpu::Device card = gpu::find_device(name).value();
    for (const FigureRow& row : figure_rows()) {
      if (row.repeats != "parts" || row.unit != "GB/s") continue;
      const LaunchParameters sizes = row.sizes(card);
      EXPECT_GT(row.work(sizes, card), 2.0 * static_cast<double>(card.l2.size_bytes))
          << name << ": " << row.name;
      if (!sizes.contains("elements")) continue;
      EXPECT_GE(sizes.at("elements"), 4 * sizes.at("steps") * sizes.at("parts") *
                                          sizes.at("blocks") * sizes.at("threads"))
          << row.name;
    }
  }
}

TEST(FigureTable, a_run_becomes_time_of_one_or_a_rate) {
  const gpu::Device card = tiny_card();
  const auto value = [&](const char* name, const LaunchParameters& sizes, double ns) {
    return figure_of(**find_figure(name), sizes, card, ns);
  };
  EXPECT_EQ(value("l1_latency", {{"turns", 4}, {"parts", 2}}, 640), 10);
  EXPECT_EQ(value("l2_read", {{"steps", 1}, {"parts", 1}, {"blocks", 2}, {"threads", 100}}, 1280),
            10);
  EXPECT_EQ(value("atomics", {{"blocks", 10}, {"rounds", 2}}, 1024), 5);
  EXPECT_EQ(value("short_blocks", {{"blocks", 40}, {"kernels", 1}}, 500), 50) << "four at a time";
}

TEST(Peaks, that_a_figure_passes_are_named_of_dram_and_of_a_simulated_card_s_lanes) {
  const gpu::Device card = tiny_card();  // 80 GB/s; 2 SMs of 128 lanes at 1.733 GHz: 443.6 G/s
  const auto checked = [&](std::string_view figure, double value,
                           PeakOf device_is = PeakOf::simulation) {
    const auto result = check_peak(**find_figure(figure), value, card, device_is);
    if (result) return std::string("right");
    EXPECT_EQ(result.error().kind, ErrorKind::check_failed);
    return result.error().message;
  };
  EXPECT_EQ(checked("dram_read", 80), "right");
  EXPECT_EQ(
      checked("add_half", 80.2, PeakOf::description),
      "figure 'add_half': 80.2 GB/s cannot be right, because tiny has 80 GB/s at most: give a "
      "description of this card, or correct the figure");
  EXPECT_THAT(checked("dram_write", 80.2), HasSubstr("at most: the simulation is wrong"));
  EXPECT_EQ(checked("compute", 443), "right");
  EXPECT_THAT(checked("compute", 445),
              HasSubstr("445 G/s cannot be right, because tiny has 443.65"));
  EXPECT_EQ(checked("compute", 445, PeakOf::description), "right");
  EXPECT_EQ(checked("l2_read", 1e6), "right");
  EXPECT_EQ(checked("dram_latency", 1e6), "right");
}

TEST(Peaks, that_a_simulated_figure_passes_end_the_simulation) {
  FigureSet set;
  set.figures = {{"l2_read", 1e6, 0, {}}, {"dram_read", 80, 0, {}}};
  EXPECT_EQ(simulated_below_peaks(set, tiny_card())->figures.size(), 2U);
  set.figures[1].value = 80.2;
  EXPECT_THAT(simulated_below_peaks(set, tiny_card()).error().message,
              HasSubstr("figure 'dram_read': 80.2 GB/s cannot be right"));
}

// The bus of an H200 is wider, but these are figures of an H100.
TEST(Peaks, are_those_of_the_card_that_was_measured_whatever_the_description) {
  const gpu::Device wider = gpu::find_device("h200").value();
  FigureSet figures;
  figures.device.name = "NVIDIA H100 80GB HBM3";
  figures.figures = {{"dram_read", 4000, 0, {}}};
  const auto found = calibrate(wider, figures, {}, {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(),
            (Error{ErrorKind::check_failed,
                   "figure 'dram_read': 4000 GB/s cannot be right, because NVIDIA H100 80GB HBM3 "
                   "has 3352.3 GB/s at most: correct the figure, or name the card that was "
                   "measured"}));
  EXPECT_TRUE(check_card_peak(**find_figure("dram_read"), 4000, "NVIDIA H200"));
  EXPECT_TRUE(check_card_peak(**find_figure("dram_read"), 4000, "a card that is not built in"));
}

TEST(Peaks, end_a_fit_to_figures_that_pass_them) {
  FigureSet figures = only(figures_of(tiny_card()), {"dram_read"});
  figures.figures.front().value = 200;
  const auto found = calibrate(tiny_card(), figures, {}, {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(found.error().message, HasSubstr("figure 'dram_read': 200 GB/s cannot be right"));
}

// Peaks of the data sheet. DRAM gets 0.8 of its bus at least, because nothing else is the limit.
TEST(SimulatedFigures, lie_below_the_peaks_of_the_card_and_not_far_below) {
  for (const char* const name : {"gtx1080", "a30"}) {
    const gpu::Device card = gpu::find_device(name).value();
    const gpu::MemorySystem& system = *card.memory_system;
    SoloSimulation simulation(card, 1);
    const auto value = [&](std::string_view figure) {
      const FigureRow& row = **find_figure(figure);
      const LaunchParameters sizes = row.sizes(card);
      EXPECT_TRUE(simulation.record(row, sizes)) << figure;
      return simulation.value(row, sizes, card).value();
    };
    const double bus = card.dram.bandwidth_bytes_per_s / 1e9;
    for (const char* const figure : {"dram_read", "dram_write", "add"}) {
      EXPECT_LE(value(figure), bus) << name << " " << figure;
      EXPECT_GE(value(figure), 0.8 * bus) << name << " " << figure;
    }
    const double lanes = 32 * system.float_per_cycle * card.topology.sm_count();
    EXPECT_LE(value("compute"), lanes * card.sm_clock_hz / 1e9) << name;
    EXPECT_GE(value("compute"), 0.6 * lanes * card.sm_clock_hz / 1e9) << name;
  }
}

TEST(Figures, come_back_from_a_file_as_they_were) {
  FigureSet set = only(figures_of(tiny_card()), {"l1_latency", "atomics"});
  set.source = "a test";
  set.device.driver = "1.2";
  set.figures[0].spread = 0.25;
  const std::string text = figures_json(set, "demarc calibrate");
  EXPECT_EQ(Json::parse(text)["schema"], "demarc.calibrate.figures/1");
  const auto read = parse_figures(text, "f.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(figures_json(*read, "demarc calibrate"), text);
  EXPECT_EQ(figure(*read, "l1_latency").spread, 0.25);
  EXPECT_EQ(read->device.sms, 2U);
  EXPECT_THAT(figures_text(*read), HasSubstr("+-25.0 %  a dependent load that hits the L1"));
}

std::string figures_file(const std::string& figures, const std::string& more = "") {
  return R"({"schema": "demarc.calibrate.figures/1", "date": "2026-11-25",
             "context": {"device_name": "X"}, "figures": [)" +
         figures + "]" + more + "}";
}

TEST(Figures, of_cards_that_were_measured_can_be_fitted_to) {
  for (const auto& [file, device] :
       {std::pair{"figures-h100.json", "h100-sxm"}, {"figures-h200.json", "h200"}}) {
    const auto path = test::source_dir() / "docs" / "measurements" / file;
    const auto text = read_file(path);
    ASSERT_TRUE(text) << text.error().message;
    const auto set = parse_figures(*text, path.string());
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(set->figures.size(), figure_rows().size());
    EXPECT_EQ(set->device.sms, gpu::find_device(device)->topology.sm_count());
  }
}

TEST(Figures, without_sizes_are_taken_as_those_of_the_description) {
  const auto read = parse_figures(
      figures_file(R"({"figure": "l1_latency", "value": 60, "unit": "ns"})"), "f.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->figures.front().parameters.empty());
  const auto found = calibrate(tiny_card(), *read, {}, {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->residuals.front().figure.parameters.at("turns"), 256);
}

TEST(Figures, of_a_wrong_file_are_refused_with_the_path_of_the_key) {
  const auto refusal = [](const std::string& text) {
    const auto read = parse_figures(text, "f.json");
    return read ? "read" : read.error().message;
  };
  EXPECT_THAT(refusal("{"), HasSubstr("f.json"));
  EXPECT_EQ(refusal(R"({"schema": "demarc.device/1"})"),
            "f.json.schema: 'demarc.device/1' is not 'demarc.calibrate.figures/1'");
  EXPECT_EQ(refusal(figures_file("")), "f.json.figures: at least one figure is needed");
  EXPECT_THAT(
      refusal(figures_file(R"({"figure": "x"})")),
      HasSubstr("f.json.figures[0].figure: there is no figure 'x'; the figures are l1_latency, "));
  EXPECT_EQ(refusal(figures_file(R"({"figure": "l1_latency", "value": 1, "unit": "GB/s"})")),
            "f.json.figures[0].unit: 'l1_latency' has the unit ns, not 'GB/s'");
  EXPECT_EQ(refusal(figures_file(R"({"figure": "l1_latency", "value": -1, "unit": "ns"})")),
            "f.json.figures[0].value: -1 must be above 0");
  EXPECT_EQ(
      refusal(figures_file(R"({"figure": "l1_latency", "value": 1, "unit": "ns", "spread": -1})")),
      "f.json.figures[0].spread: -1 must be 0 or more");
  const std::string good = R"({"figure": "l1_latency", "value": 1, "unit": "ns"})";
  EXPECT_EQ(refusal(figures_file(good + "," + good)),
            "f.json.figures[1].figure: 'l1_latency' appears twice");
  EXPECT_THAT(refusal(figures_file(good, R"(, "more": 1)")), HasSubstr("more"));
  EXPECT_THAT(refusal(figures_file(
                  R"({"figure": "l1_latency", "value": 1, "unit": "ns", "parameters": {}})")),
              HasSubstr("f.json.figures[0].parameters"));
  EXPECT_THAT(refusal(figures_file(R"({"figure": "compute", "value": 1, "unit": "G/s",
                               "parameters": {"rounds": 1, "blocks": 1, "words": 1}})")),
              HasSubstr("words"));
}

}  // namespace
}  // namespace demarc::study
