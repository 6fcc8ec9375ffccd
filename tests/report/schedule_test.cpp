// Traces, pictures and pages of thread-block dispatch.
#include <gtest/gtest.h>

#include <map>

#include "demarc/base/json.hpp"
#include "demarc/report/schedule_page.hpp"

namespace demarc::report {
namespace {

// Two blocks of A on SM 0 over the same time as one of B, then B on SM 1.
sim::DispatchTimeline two_kernels() {
  sim::DispatchTimeline timeline;
  timeline.title = "A <&> B";
  timeline.unit = "tick";
  timeline.sms = 2;
  timeline.kernels = {"A", "B"};
  timeline.spans = {{0, 0, 1, 5, 2}, {0, 1, 2, 4, 1}, {1, 1, 6, 8, 1}};
  return timeline;
}

TEST(ScheduleTrace, has_a_track_an_sm_and_a_slice_a_span) {
  const Json trace = Json::parse(schedule_trace(two_kernels()));
  std::vector<std::string> tracks;
  std::vector<std::string> slices;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "process_name") {
      tracks.push_back(event["args"]["name"]);
    }
    if (event["ph"] != "X") continue;
    slices.push_back(fmt::format("{} on {}.{} from {} for {}", event["name"].get<std::string>(),
                                 event["pid"].get<int>(), event["tid"].get<int>(),
                                 event["ts"].get<double>(), event["dur"].get<double>()));
  }
  EXPECT_EQ(tracks, (std::vector<std::string>{"SM 0", "SM 1"}));
  // The overlapping span has a lane of its own.
  EXPECT_EQ(slices, (std::vector<std::string>{"A on 1.1 from 1 for 4", "B on 1.2 from 2 for 2",
                                              "B on 2.3 from 6 for 2"}));
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ScheduleSvg, draws_every_span_with_its_name_and_escapes_the_title) {
  const std::string svg = schedule_svg(two_kernels());
  EXPECT_EQ(occurrences(svg, "<rect class=\"bar\""), 3U);
  EXPECT_EQ(occurrences(svg, "<rect class=\"key\""), 2U) << "a legend entry a kernel";
  EXPECT_EQ(occurrences(svg, ">B</text>"), 3U) << "on both bars and in the legend";
  EXPECT_NE(svg.find("A &lt;&amp;&gt; B"), std::string::npos);
  EXPECT_NE(svg.find("<title>A: 2 blocks, 1 to 5 tick</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>B: 1 block, 2 to 4 tick</title>"), std::string::npos);
  EXPECT_NE(svg.find(">SM 1</text>"), std::string::npos);
  EXPECT_NE(svg.find(">time in ticks</text>"), std::string::npos);
  for (const char* tick : {">0<", ">2<", ">4<", ">6<", ">8<"}) {
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  }
}

// A long run stays a small picture: waves too narrow to see are one bar, and no block is lost.
TEST(ScheduleSvg, joins_waves_that_are_too_narrow_to_see) {
  sim::DispatchTimeline timeline;
  timeline.unit = "tick";
  timeline.sms = 1;
  timeline.kernels = {"A", "B"};
  for (int i = 0; i < 10000; ++i) timeline.spans.push_back({0, 0, i * 1.0, i + 1.0, 3});
  timeline.spans.push_back({0, 1, 10000, 10001, 1});
  const std::string svg = schedule_svg(timeline);
  EXPECT_EQ(occurrences(svg, "<rect class=\"bar\""), 2U);
  EXPECT_NE(svg.find("<title>A: 30000 blocks in 10000 waves, 0 to 10000 tick</title>"),
            std::string::npos);
}

TEST(SchedulePage, an_empty_timeline_is_a_picture_all_the_same) {
  sim::DispatchTimeline nothing;
  nothing.sms = 1;
  EXPECT_NE(schedule_svg(nothing).find("</svg>"), std::string::npos);
}

struct TbCellKey {
  sim::TbModel model;
  sim::TbMix mix;
  const char* policy;
  std::uint32_t level;
  std::uint32_t memory;
};

// Cells as a study makes them, one run a seed, with the ANTT given.
sim::TbCell cell_with(TbCellKey key, const std::vector<double>& antt) {
  sim::TbCell cell;
  cell.model = key.model;
  cell.mix = key.mix;
  cell.policy = key.policy;
  cell.level = key.level;
  cell.memory = key.memory;
  for (const double value : antt) {
    sim::TbMetrics metrics;
    metrics.antt_queue = value;
    metrics.utilization = {50};
    cell.runs.push_back(metrics);
  }
  return cell;
}

// A number comes out within the interval or 2 %; the caption counts those, by capacity.
TEST(SchedulePage, the_published_table_marks_what_comes_out_and_says_so) {
  sim::TbStudy study;
  constexpr auto paper = sim::TbModel::simtbs_2020;
  study.cells = {cell_with({paper, sim::TbMix::uniform, "rr", 80, 250000}, {2.2, 2.3}),
                 cell_with({paper, sim::TbMix::uniform, "bfa", 80, 250000}, {1.40, 1.40}),
                 cell_with({paper, sim::TbMix::uniform, "dfa", 80, 250000}, {1.5, 1.5})};
  const Table table = schedule_published_table(study);
  std::map<std::string, Tone> tones;
  for (const auto& row : table.rows) tones[row[0].text] = row[2].tone;
  EXPECT_EQ(tones.at("Figure 6: ANTT of RR at 80 %"), Tone::good);
  EXPECT_EQ(tones.at("Figure 6: ANTT of BFA at 80 %"), Tone::good);
  EXPECT_EQ(tones.at("Figure 6: ANTT of DFA at 80 %"), Tone::bad);
  EXPECT_NE(table.caption.find("of 8 numbers, 2 with 250 000, 0 with 500 000, 0 with 1 000 000"),
            std::string::npos)
      << table.caption;
  EXPECT_NE(table.caption.find("No one capacity gives all figures"), std::string::npos);
}

}  // namespace
}  // namespace demarc::report
