// The worker's end of a lane in another process, request by request; and what is cut out of the
// output of one that ended.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "demarc/study/remote_lane.hpp"
#include "demarc/workload/short_names.hpp"
#include "last_lines.hpp"
#include "scripted_executor.hpp"

namespace demarc::study {
namespace {

// What a worker with this script answers to these lines.
std::string answers(Script& script, const std::string& requests) {
  int down[2];
  int up[2];
  EXPECT_EQ(::pipe2(down, O_CLOEXEC) | ::pipe2(up, O_CLOEXEC), 0);
  EXPECT_EQ(::write(down[1], requests.data(), requests.size()),
            static_cast<ssize_t>(requests.size()));
  ::close(down[1]);
  ScriptedLane lane(script, "lane");
  EXPECT_TRUE(serve_lane(lane, down[0], up[1]));
  ::close(down[0]);
  ::close(up[1]);
  std::string all;
  char chunk[4096];
  for (ssize_t n = 0; (n = ::read(up[0], chunk, sizeof chunk)) > 0;) {
    all.append(chunk, static_cast<std::size_t>(n));
  }
  ::close(up[0]);
  return all;
}

constexpr const char* all_requests = R"({"do":"load","name":"mm","spec":"launch:mm.json"}
{"do":"sample","count":3,"longest_seconds":2.5}
{"do":"outputs"}
{"do":"start"}
{"do":"stop"}
{"do":"unload"}
)";

TEST(ServeLane, every_request_is_done_and_answered_in_order) {
  Script script;
  script.outputs["lane"] = {~std::uint64_t{0}, false, "c[3]\tis 4,\nnot 5"};
  EXPECT_EQ(answers(script, all_requests), R"({}
{"times":[100.0,100.0,100.0],"runs":[]}
{"digest":"18446744073709551615","exact":false,"mismatch":"c[3]\tis 4,\nnot 5"}
{}
{"rate":2.0}
{}
)");
  EXPECT_EQ(script.log,
            (std::vector<std::string>{"lane load mm", "lane sample mm", "lane outputs mm",
                                      "lane start mm", "lane stop mm", "lane unload mm"}));
}

TEST(ServeLane, what_a_worker_does_not_understand_is_refused_and_the_next_request_served) {
  Script script;
  const auto refused = [&](const std::string& request, const std::string& why) {
    const std::string all = answers(script, request + "\n{\"do\":\"start\"}\n");
    EXPECT_NE(all.find(why), std::string::npos) << request << ": " << all;
    EXPECT_TRUE(all.ends_with(",\"code\":1}\n{}\n")) << all;
  };
  refused(R"({"do":"load","name":"mm"})", "request: the key 'spec' is missing");
  refused(R"({"do":"sample","count":-1,"longest_seconds":1})", "request.count");
  refused(R"({"do":"sample","count":4294967296,"longest_seconds":1})", "request.count");
  refused(R"({"do":"sample","count":1,"longest_seconds":"x"})", "request.longest_seconds");
  refused(R"({"do":"start","now":true})", "now");
  refused(R"({"do":"fly"})",
          "request.do: 'fly': one of load, sample, outputs, start, stop, unload was expected");
  refused("", "request");
}

TEST(ServeLane, an_error_of_the_lane_goes_on_one_line_with_its_kind) {
  for (const char* what : {"load", "sample", "outputs", "start", "stop", "unload"}) {
    Script script;
    script.faults[std::string("lane ") + what + " mm"] = {ErrorKind::check_failed, "a\nb\tc"};
    const std::string all = answers(script, all_requests);
    EXPECT_NE(all.find(R"({"error":"a\nb\tc","code":3})"), std::string::npos) << what;
    EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 6) << what;
  }
}

TEST(LastLines, are_eight_on_one_line) {
  EXPECT_EQ(last_lines(""), "nothing");
  EXPECT_EQ(last_lines("\n\n"), "nothing");
  EXPECT_EQ(last_lines("one"), "one");
  EXPECT_EQ(last_lines("one\ntwo\n\n"), "one | two");
  EXPECT_EQ(last_lines("1\n2\n3\n4\n5\n6\n7\n8\n"), "1 | 2 | 3 | 4 | 5 | 6 | 7 | 8");
  EXPECT_EQ(last_lines("0\n1\n2\n3\n4\n5\n6\n7\n8\n"), "1 | 2 | 3 | 4 | 5 | 6 | 7 | 8");
}

TEST(WorkloadNames, short_ones_stand_for_bundled_kernels_in_any_case) {
  for (const auto& [name, full] :
       std::vector<std::pair<std::string, std::string>>{{"mm", "matmul_tiled"},
                                                        {"VA", "vecadd"},
                                                        {"sp", "scalarprod"},
                                                        {"sn", "bitonic"},
                                                        {"chase", "stress_chase"},
                                                        {"atomics", "stress_atomics"},
                                                        {"compute", "stress_arithmetic"},
                                                        {"dram_read", "stress_dram_read"},
                                                        {"dram_write", "stress_dram_write"},
                                                        {"l2_read", "stress_l2_read"},
                                                        {"L2_Write", "stress_l2_write"},
                                                        {"LSTM", "lstm"}}) {
    EXPECT_EQ(workload::full_name(name), full);
  }
}

TEST(WorkloadNames, a_workload_s_meaning_is_the_summary_of_its_kernel_at_any_size) {
  EXPECT_EQ(meaning_of({"va", "va"}), "vector addition (VA)");
  EXPECT_EQ(meaning_of({"VA", "VA@large"}), "vector addition (VA)");
  EXPECT_EQ(meaning_of({"chase", "chase"}),
            "follows chains of dependent loads through a random cycle");
  EXPECT_NE(meaning_of({"in", "copy_in"}), "");
  EXPECT_NE(meaning_of({"out", "copy_out"}), meaning_of({"in", "copy_in"}));
  EXPECT_EQ(meaning_of({"train", "cmd:python3 train.py"}), "");
  EXPECT_EQ(meaning_of({"mine", "launch:mine.json"}), "");
}

}  // namespace
}  // namespace demarc::study
