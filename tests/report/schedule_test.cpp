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

std::map<std::string, std::vector<Cell>> rows_of(const sim::TbStudy& study) {
  std::map<std::string, std::vector<Cell>> rows;
  for (const auto& row : schedule_published_table(study).rows) rows[row[0].text] = row;
  return rows;
}

// A number is reproduced within what one more workload gives, or 2 %; the caption counts those.
TEST(SchedulePage, the_table_marks_what_is_reproduced_prints_the_limits_and_counts) {
  sim::TbStudy study;
  // The mean of RR is 2.6; its interval is 2.6 ± 0.10, one more of its workloads 2.6 ± 0.25.
  study.runs = 6;
  study.cells = {cell_with(0, {2.44, 2.55, 2.60, 2.65, 2.70, 2.66}),
                 cell_with(1, {1.40, 1.40, 1.40, 1.40, 1.40, 1.40}),
                 cell_with(2, {1.5, 1.5, 1.5, 1.5, 1.5, 1.5})};
  auto rows = rows_of(study);
  const auto& rr = rows.at("Figure 6: ANTT of RR at 80 %");
  EXPECT_EQ(rr[1].text, "about 2.3");
  EXPECT_EQ(rr[2].text, "section III, Figure 6");
  EXPECT_EQ(rr[3].tone, Tone::bad);
  EXPECT_EQ(rr[4].text, "2.04 to 2.56");
  EXPECT_EQ(rr[5].text, "no");
  EXPECT_EQ(rr[6].text, "2.23");
  // 79 % more than the mean of BFA and DFA.
  EXPECT_EQ(rows.at("Figure 6: ANTT of RR at 80 % above BFA and DFA by, %")[3].text, "79.3 ± 6.8");
  EXPECT_EQ(rows.at("Section IV: ANTT of RR over the better of BFA and DFA at 80 %")[5].text, "no");
  EXPECT_THAT(schedule_published_table(study).caption, testing::HasSubstr("Reproduced: 1 of 12."));
  study.cells[0] = cell_with(0, {2.30, 2.50, 2.60, 2.70, 2.80, 2.70});
  rows = rows_of(study);
  EXPECT_EQ(rows.at("Figure 6: ANTT of RR at 80 %")[5].text, "yes") << "outside of the mean's";
}

// The paper's text was read for these. What is not here is not the paper's.
TEST(SchedulePage, every_number_that_is_called_the_papers_has_its_place) {
  std::string said;
  for (const auto& row : schedule_published_table({}).rows) {
    EXPECT_EQ(row[1].text.empty(), row[2].text.empty()) << row[0].text;
    if (!row[1].text.empty())
      said += fmt::format("{}: {}, {}\n", row[0].text, row[1].text, row[2].text);
  }
  EXPECT_EQ(
      said,
      R"(Figure 6: ANTT at 10 %, largest of RR, BFA, DFA over smallest: no difference, section III, Figure 6
Figure 6: ANTT of RR at 80 %: about 2.3, section III, Figure 6
Figure 6: ANTT of RR at 80 % above BFA and DFA by, %: about 70 %, section III, Figure 6
Figure 7: SM use of RR at 10 % below BFA and DFA by, points: hardly any, section III, Figure 7
Figure 7: SM use of RR at 80 % below BFA and DFA by, %: about 7.8 %, section III, Figure 7
Figure 8: SM use of BFA at 125 %: 76.1 %, section III, Figure 8
Figure 8: SM use of DFA at 125 %: 76.4 %, section III, Figure 8
Figure 8: ANTT of BFA over DFA at 125 %: DFA better, section III, Figure 8
Figure 9: ANTT of DFA, largest up to 120 %: below 4, section III, Figure 9
Figure 9: ANTT of BFA at 120 % over that at 100 %: rises steeply, section III, Figure 9
Figure 9: SM use of DFA at 120 %: 86.9 %, section III, Figure 9
Section IV: ANTT of RR over the better of BFA and DFA at 80 %: at least 2, section IV
)");
}

TEST(SchedulePage, figures_that_lack_a_run_are_not_judged) {
  sim::TbStudy study;
  study.runs = 2;
  study.cells = {cell_with(0, {2.3, 2.3}), cell_with(1, {1.4}), cell_with(2, {1.4, 1.4})};
  const auto rows = rows_of(study);
  EXPECT_EQ(rows.at("Figure 6: ANTT of RR at 80 %")[5].text, "yes");
  const auto& above = rows.at("Figure 6: ANTT of RR at 80 % above BFA and DFA by, %");
  EXPECT_EQ(above[3].text, "");
  EXPECT_EQ(above[4].text, "");
  EXPECT_EQ(above[5].text, "");
  EXPECT_EQ(rows.at("Figure 8: SM use of BFA at 125 %")[5].text, "");
}

TEST(SchedulePage, the_largest_antt_of_dfa_is_over_all_loads_up_to_120) {
  sim::TbStudy study;
  study.runs = 1;
  for (const auto& [level, antt] :
       std::map<std::uint32_t, double>{{10, 1.1}, {100, 5.0}, {120, 2.0}, {125, 9.0}}) {
    study.cells.push_back(cell_with(2, {antt}));
    study.cells.back().mix = sim::TbMix::extreme;
    study.cells.back().level = level;
  }
  const auto row = rows_of(study).at("Figure 9: ANTT of DFA, largest up to 120 %");
  EXPECT_EQ(row[3].text, "5.00");
  EXPECT_EQ(row[5].text, "no");
  study.cells[1].runs.front().antt_queue = 3.9;
  EXPECT_EQ(rows_of(study).at("Figure 9: ANTT of DFA, largest up to 120 %")[5].text, "yes");
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
