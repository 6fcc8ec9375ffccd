// Records which kernel runs on which SM and when, in the SimTBS model and the pipeline.
#include "demarc/sim/dispatch/timeline.hpp"

#include <algorithm>
#include <tuple>

namespace demarc::sim {
namespace {

void sort_spans(DispatchTimeline& timeline) {
  std::sort(timeline.spans.begin(), timeline.spans.end(), [](const auto& a, const auto& b) {
    return std::tie(a.start, a.sm, a.kernel) < std::tie(b.start, b.sm, b.kernel);
  });
}

class SpanRecorder final : public TbObserver {
 public:
  explicit SpanRecorder(DispatchTimeline& timeline) : timeline_(timeline) {}
  void finished(TbTicks tick, SmIndex sm, KernelIndex kernel, TbTicks placed_tick,
                std::uint32_t blocks) override {
    timeline_.spans.push_back({sm.raw(), kernel.raw(), static_cast<double>(placed_tick.raw()),
                               static_cast<double>(tick.raw()) + 1, blocks});
  }

 private:
  DispatchTimeline& timeline_;
};

}  // namespace

DispatchTimeline pipeline_timeline(const PipelineScenario& scenario, const PipelineRun& run) {
  DispatchTimeline timeline;
  timeline.title = scenario.title;
  timeline.unit = "us";
  timeline.sms = scenario.spec.topology.sm_count();
  for (const PipelineKernel& kernel : scenario.kernels) timeline.kernels.push_back(kernel.name);
  for (const BlockRun& r : run.runs) {
    timeline.spans.push_back(
        {r.sm.raw(), r.kernel.raw(), microseconds(r.start), microseconds(r.end), r.blocks});
  }
  sort_spans(timeline);
  return timeline;
}

Result<DispatchTimeline> tb_timeline(const TbConfig& config, TbOptions options) {
  DispatchTimeline timeline;
  timeline.title = fmt::format("{}, policy {}", config.source, options.policy);
  timeline.unit = "tick";
  timeline.sms = config.sm.n_sms;
  for (const KernelIndex k : config.kernels.keys()) {
    timeline.kernels.push_back(fmt::format("kernel {}", k.raw() + 1));
  }
  SpanRecorder recorder(timeline);
  options.observer = &recorder;
  DEMARC_CHECK(simulate(config, options).map([](const TbRun&) {}));
  sort_spans(timeline);
  return timeline;
}

}  // namespace demarc::sim
