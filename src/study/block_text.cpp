// Writes where and when blocks ran as JSON and as a timeline.
#include <algorithm>
#include <tuple>

#include "demarc/base/json.hpp"
#include "demarc/base/version.hpp"
#include "demarc/study/block_runs.hpp"

namespace demarc::study {
namespace {

Json run_json(const BlockRun& run) {
  Json kernels = Json::array();
  for (const RunKernel& k : run.kernels) {
    kernels.push_back({{"name", k.name},
                       {"stream", k.stream},
                       {"priority", k.priority},
                       {"sms", k.sms},
                       {"blocks", k.blocks},
                       {"hold_us", k.hold_us}});
  }
  Json blocks = Json::array();
  for (const BlockTime& b : run.blocks) {
    blocks.push_back(Json::array({b.kernel, b.block, b.sm, b.begin_us, b.end_us}));
  }
  Json points = Json::array();
  for (const RunPoint& p : run.points) points.push_back(Json::array({p.series, p.x, p.y}));
  return {{"name", run.name},   {"finding", run.finding},
          {"holds", run.holds}, {"faults", faults_of(run)},
          {"kernels", kernels}, {"blocks_columns", {"kernel", "block", "sm", "begin_us", "end_us"}},
          {"blocks", blocks},   {"x", run.x_name},
          {"y", run.y_name},    {"points", points}};
}

}  // namespace

std::string block_runs_json(const std::vector<BlockRun>& runs, const std::string& command) {
  Json out{{"schema", "demarc.blocks/2"}};
  out["context"] = {{"program", fmt::format("demarc {}", version())},
                    {"revision", revision()},
                    {"command", command}};
  for (const BlockRun& run : runs) out["runs"].push_back(run_json(run));
  return json_text(out, 2) + "\n";
}

sim::DispatchTimeline block_timeline(const BlockRun& run) {
  sim::DispatchTimeline timeline{run.name, "us", 1, {}, {}};
  for (const RunKernel& kernel : run.kernels) timeline.kernels.push_back(kernel.name);
  for (const BlockTime& b : run.blocks) {
    timeline.sms = std::max(timeline.sms, b.sm.raw() + 1);
    timeline.spans.push_back({b.sm.raw(), b.kernel, b.begin_us, b.end_us, 1});
  }
  std::sort(timeline.spans.begin(), timeline.spans.end(), [](const auto& a, const auto& b) {
    return std::tie(a.start, a.sm) < std::tie(b.start, b.sm);
  });
  return timeline;
}

}  // namespace demarc::study
