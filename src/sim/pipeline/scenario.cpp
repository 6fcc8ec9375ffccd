// Reads scenarios of the hardware pipeline, and reports what happened to their kernels.
#include <algorithm>
#include <cmath>
#include <optional>

#include "demarc/base/json.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "demarc/sim/pipeline/scenario.hpp"
#include "pipeline/index_ranges.hpp"

namespace demarc::sim {
namespace {

struct StreamSettings {
  int priority = 0;
  TpcMask tpcs = TpcMask().set();
};

class ScenarioParser {
 public:
  explicit ScenarioParser(std::string_view source) : source_(source) {}

  Result<PipelineScenario> parse(std::string_view text) {
    DEMARC_TRY(const Json json, parse_json(text, source_));
    DEMARC_TRY(JsonObject root, JsonObject::of(json, source_));
    DEMARC_TRY(const std::string schema, root.string("schema"));
    if (schema != "demarc.scenario/1") {
      return invalid_input(
          "{}: schema '{}': expected demarc.scenario/1{}", source_, schema,
          schema == "demarc.tasks/1" ? "; a task set goes to demarc schedule plan" : "");
    }
    DEMARC_TRY(scenario_.title, root.string_or("title", ""));
    DEMARC_TRY(scenario_.device_name, root.string("device"));
    DEMARC_TRY(const gpu::Device device, gpu::find_device(scenario_.device_name));
    scenario_.spec.topology = device.topology;
    scenario_.spec.sm = device.sm;
    DEMARC_TRY(const auto slots, root.integer_or("task_slots", 1, 1 << 20, 32));
    DEMARC_TRY(const auto queues, root.integer_or("hardware_queues", 1, 1 << 20, 32));
    scenario_.spec.task_slots = static_cast<std::uint32_t>(slots);
    scenario_.spec.hardware_queues = static_cast<std::uint32_t>(queues);
    DEMARC_TRY(const Json* streams, root.array("streams"));
    for (const Json& stream : *streams) DEMARC_CHECK(take_stream(stream));
    DEMARC_TRY(const Json* kernels, root.array("kernels"));
    for (const Json& kernel : *kernels) DEMARC_CHECK(take_kernel(kernel));
    DEMARC_CHECK(root.finish());
    if (scenario_.kernels.empty()) return invalid_input("{}: kernels: none given", source_);
    return std::move(scenario_);
  }

 private:
  // "tpcs" or "gpcs" of an object, as a mask; nothing when it has neither.
  Result<bool> take_mask(JsonObject& object, TpcMask& mask) {
    const gpu::Topology& topology = scenario_.spec.topology;
    if (object.has("tpcs") && object.has("gpcs")) {
      return invalid_input("{}: gives both tpcs and gpcs; leave one out", object.where());
    }
    if (object.has("tpcs")) {
      DEMARC_TRY(const std::string text, object.string("tpcs"));
      DEMARC_TRY(const auto tpcs,
                 parse_index_list(text, topology.tpc_count() - 1, object.where() + ".tpcs"));
      mask.reset();
      for (const std::uint32_t t : tpcs) mask.set(t);
      return true;
    }
    if (object.has("gpcs")) {
      DEMARC_TRY(const std::string text, object.string("gpcs"));
      DEMARC_TRY(const auto gpcs,
                 parse_index_list(text, topology.gpc_count() - 1, object.where() + ".gpcs"));
      mask.reset();
      for (const std::uint32_t g : gpcs) {
        for (const TpcIndex t : topology.tpcs_of_gpc(gpu::GpcIndex(g))) mask.set(t.raw());
      }
      return true;
    }
    return false;
  }

  Result<void> take_stream(const Json& json) {
    DEMARC_TRY(JsonObject object,
               JsonObject::of(json, fmt::format("{}: streams[{}]", source_, settings_.size())));
    StreamSettings settings;
    DEMARC_TRY(std::string name, object.string("name"));
    DEMARC_TRY(const auto priority, object.integer_or("priority", -100, 100, 0));
    settings.priority = static_cast<int>(priority);
    DEMARC_CHECK(take_mask(object, settings.tpcs));
    DEMARC_CHECK(object.finish());
    scenario_.streams.push_back(std::move(name));
    settings_.push_back(settings);
    return {};
  }

  static Result<Nanoseconds> time(JsonObject& object, std::string_view key,
                                  std::optional<double> fallback) {
    double us = 0;
    if (fallback) {
      DEMARC_TRY(us, object.number_or(key, *fallback));
    } else {
      DEMARC_TRY(us, object.number(key));
    }
    if (!(us >= 0) || us > 1e12) {
      return invalid_input("{}.{}: {} is not a time in microseconds", object.where(), key, us);
    }
    return Nanoseconds(std::llround(us * 1000));
  }

  Result<void> take_kernel(const Json& json) {
    DEMARC_TRY(JsonObject object,
               JsonObject::of(json, fmt::format("{}: kernels[{}]", source_, kernel_entries_++)));
    PipelineKernel kernel;
    DEMARC_TRY(kernel.name, object.string("name"));
    DEMARC_TRY(const std::string stream, object.string("stream"));
    const auto at = std::find(scenario_.streams.begin(), scenario_.streams.end(), stream);
    if (at == scenario_.streams.end()) {
      return invalid_input("{}.stream: '{}' is not one of the streams: {}", object.where(), stream,
                           joined(scenario_.streams, ", "));
    }
    kernel.stream = static_cast<std::uint32_t>(at - scenario_.streams.begin());
    const StreamSettings& settings = settings_[kernel.stream];
    kernel.tpcs = settings.tpcs;
    DEMARC_TRY(kernel.arrival, time(object, "arrival_us", 0.0));
    DEMARC_TRY(kernel.block_time, time(object, "block_us", std::nullopt));
    DEMARC_TRY(const auto blocks, object.integer("blocks", 1, std::int64_t{1} << 40));
    DEMARC_TRY(const auto threads, object.integer("threads", 1, 1024));
    DEMARC_TRY(const auto registers, object.integer_or("registers_per_thread", 0, 255, 0));
    DEMARC_TRY(const auto shared, object.integer_or("shared_bytes", 0, 1 << 24, 0));
    DEMARC_TRY(const auto priority, object.integer_or("priority", -100, 100, settings.priority));
    DEMARC_TRY(const auto repeat, object.integer_or("repeat", 1, 1 << 20, 1));
    DEMARC_CHECK(take_mask(object, kernel.tpcs));
    DEMARC_CHECK(object.finish());
    kernel.blocks = static_cast<std::uint64_t>(blocks);
    kernel.threads = static_cast<std::uint32_t>(threads);
    kernel.registers_per_thread = static_cast<std::uint32_t>(registers);
    kernel.shared_bytes = static_cast<std::uint32_t>(shared);
    kernel.priority = static_cast<int>(priority);
    for (std::int64_t i = 0; i < repeat; ++i) scenario_.kernels.push_back(kernel);
    return {};
  }

  std::string source_;
  std::size_t kernel_entries_ = 0;
  std::vector<StreamSettings> settings_;
  PipelineScenario scenario_;
};

}  // namespace

Result<PipelineScenario> parse_scenario(std::string_view text, std::string_view source) {
  return ScenarioParser(source).parse(text);
}

std::string report_scenario(const PipelineScenario& scenario, const PipelineRun& run, bool json) {
  if (json) {
    Json root{{"schema", "demarc.schedule.hardware/1"},
              {"version", version()},
              {"device", scenario.device_name},
              {"task_slots", scenario.spec.task_slots},
              {"hardware_queues", scenario.spec.hardware_queues},
              {"end_us", microseconds(run.end)},
              {"blocks", run.launched_blocks},
              {"most_slots_used", run.max_slots_used},
              {"kernels", Json::array()}};
    for (const KernelIndex k : run.kernels.keys()) {
      const PipelineOutcome& outcome = run.kernels[k];
      root["kernels"].push_back({{"name", scenario.kernels[k].name},
                                 {"stream", scenario.streams[scenario.kernels[k].stream]},
                                 {"priority", scenario.kernels[k].priority},
                                 {"queued_us", microseconds(outcome.queued)},
                                 {"first_us", microseconds(outcome.started)},
                                 {"end_us", microseconds(outcome.ended)},
                                 {"evictions", outcome.evictions},
                                 {"sms", index_array(sms_of_kernel(run, k))}});
    }
    return json_text(root, 2) + "\n";
  }
  std::string out;
  append(out, "{}{}device {}, {} task slots, {} hardware queues\n", scenario.title,
         scenario.title.empty() ? "" : ": ", scenario.device_name, scenario.spec.task_slots,
         scenario.spec.hardware_queues);
  append(out, "{:<14} {:<10} {:>11} {:>11} {:>11} {:>8}  SMs\n", "kernel", "stream", "queued us",
         "first us", "end us", "evicted");
  for (const KernelIndex k : run.kernels.keys()) {
    const PipelineOutcome& outcome = run.kernels[k];
    append(out, "{:<14} {:<10} {:>11.3f} {:>11.3f} {:>11.3f} {:>8}  {}\n", scenario.kernels[k].name,
           scenario.streams[scenario.kernels[k].stream], microseconds(outcome.queued),
           microseconds(outcome.started), microseconds(outcome.ended), outcome.evictions,
           index_ranges(sms_of_kernel(run, k)));
  }
  return out;
}

}  // namespace demarc::sim
