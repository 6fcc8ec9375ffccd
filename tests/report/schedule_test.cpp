// Traces, pictures and pages of thread-block dispatch.
#include <gtest/gtest.h>

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
  EXPECT_EQ(slices, (std::vector<std::string>{"A on 0.0 from 1 for 4", "B on 0.1 from 2 for 2",
                                              "B on 1.0 from 6 for 2"}));
}

TEST(ScheduleSvg, draws_every_span_and_escapes_the_title) {
  const std::string svg = schedule_svg(two_kernels());
  std::size_t bars = 0;
  for (std::size_t at = svg.find("<rect x="); at != std::string::npos;
       at = svg.find("<rect x=", at + 1)) {
    ++bars;
  }
  EXPECT_EQ(bars, 3U);
  EXPECT_NE(svg.find("A &lt;&amp;&gt; B"), std::string::npos);
  EXPECT_NE(svg.find("<title>A: 2 blocks, 1 to 5 tick</title>"), std::string::npos);
  EXPECT_NE(svg.find(">SM 1</text>"), std::string::npos);
}

TEST(SchedulePage, an_empty_timeline_is_a_picture_all_the_same) {
  sim::DispatchTimeline nothing;
  nothing.sms = 1;
  EXPECT_NE(schedule_svg(nothing).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace demarc::report
