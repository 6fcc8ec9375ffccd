// Traces, pictures and pages of thread-block dispatch.
#include <gmock/gmock.h>
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

// Cells as a study makes them, one run a seed, with the ANTT given.
sim::TbCell cell_with(std::size_t line, const std::vector<double>& antt) {
  sim::TbCell cell;
  cell.policy = sim::paper_lines.at(line).policy;
  cell.level = 80;
  for (const double value : antt) {
    sim::TbMetrics metrics;
    metrics.antt_queue = value;
    metrics.utilization = metrics.utilization_full = {50};
    cell.runs.push_back(metrics);
  }
  return cell;
}

// A number comes out within what one more workload gives, or 2 %; the caption counts those.
TEST(SchedulePage, the_published_table_marks_what_comes_out_and_says_so) {
  sim::TbStudy study;
  // The mean of RR is 2.6; its interval is 2.6 ± 0.17, one more of its workloads 2.6 ± 0.44.
  study.cells = {cell_with(0, {2.44, 2.55, 2.60, 2.65, 2.70, 2.66}), cell_with(1, {1.40, 1.40}),
                 cell_with(2, {1.5, 1.5})};
  const auto tones = [&] {
    std::map<std::string, Tone> of;
    for (const auto& row : schedule_published_table(study).rows) of[row[0].text] = row[2].tone;
    return of;
  };
  EXPECT_EQ(tones().at("Figure 6: ANTT of RR at 80 %"), Tone::bad);
  EXPECT_EQ(tones().at("Figure 6: ANTT of BFA at 80 %"), Tone::good);
  EXPECT_EQ(tones().at("Figure 6: ANTT of DFA at 80 %"), Tone::bad);
  EXPECT_THAT(schedule_published_table(study).caption, testing::HasSubstr(": 1 of 8 do."));
  study.cells[0] = cell_with(0, {2.30, 2.50, 2.60, 2.70, 2.80, 2.70});
  EXPECT_EQ(tones().at("Figure 6: ANTT of RR at 80 %"), Tone::good) << "outside of the mean's";
}

TEST(SchedulePage, workloads_of_ones_own_have_no_published_figures) {
  sim::TbStudy study;
  study.options.workloads.resize(1);
  study.options.workloads[0].source = "mine.conf";
  study.runs = 1;
  for (std::size_t line = 0; line < sim::paper_lines.size(); ++line) {
    study.cells.push_back(cell_with(line, {1.0 + static_cast<double>(line)}));
    study.cells.back().policy_rules = sim::paper_lines[line].policy_rules;
    study.cells.back().mix = sim::TbMix::given;
    study.cells.back().level = 0;
  }
  const std::string page = schedule_study_page(study, "command");
  EXPECT_THAT(page, testing::HasSubstr("mine.conf"));
  EXPECT_THAT(page, testing::HasSubstr("RR without the stop"));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("Figure 6")));
}

}  // namespace
}  // namespace demarc::report
