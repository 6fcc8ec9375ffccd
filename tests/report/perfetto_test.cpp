// Tests that traces are JSON that Perfetto reads.
#include "demarc/report/perfetto.hpp"

#include <gtest/gtest.h>

#include "demarc/base/json.hpp"

namespace demarc::report {
namespace {

TEST(TraceWriter, writes_what_perfetto_reads) {
  TraceWriter trace;
  trace.process(1, "GPU \"0\"");
  trace.thread(1, 3, "SM 3");
  trace.slice(1, 3, "block 0", 1.5, 2.25, {{"warps", "8"}});
  trace.counter(1, "bandwidth", 4, 0.5);
  trace.flow(9, "miss", 1, 3, 1.5, 1, 4, 2.0);
  const Json json = Json::parse(trace.json());
  const Json& events = json["traceEvents"];
  ASSERT_EQ(events.size(), 7U);
  EXPECT_EQ(events[0]["args"]["name"], "GPU \"0\"");
  EXPECT_EQ(
      events[3],
      Json::parse(
          R"({"ph":"X","name":"block 0","pid":1,"tid":3,"ts":1.5,"dur":2.25,"args":{"warps":"8"}})"));
  EXPECT_EQ(events[4]["args"]["value"], 0.5);
  EXPECT_EQ(events[5]["id"], events[6]["id"]);
}

TEST(TraceWriter, an_empty_trace_is_valid) {
  EXPECT_TRUE(Json::parse(TraceWriter().json())["traceEvents"].empty());
}

}  // namespace
}  // namespace demarc::report
