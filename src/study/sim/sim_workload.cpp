// Loads a workload for a simulated lane: records its steps, and checks its outputs.
#include "sim/sim_workload.hpp"

#include <algorithm>
#include <map>

#include "demarc/base/hash.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/ptx/ir.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/sim/memory/access_stream.hpp"
#include "demarc/sim/memory/emulated.hpp"
#include "demarc/sim/memory/spec.hpp"
#include "demarc/workload/workload.hpp"
#include "workload_spec.hpp"

namespace demarc::study {
namespace {

// Steps of a launch kept in memory at most; above, each run is emulated again.
constexpr std::uint64_t max_recorded_bytes = std::uint64_t{192} << 20U;

using Parameters = std::map<std::string, std::int64_t>;

// Sizes at which a launch takes some ten to some hundred microseconds of simulated time.
const std::map<std::string, Parameters, std::less<>>& sim_parameters() {
  static const std::map<std::string, Parameters, std::less<>> sizes{
      {"vecadd", {{"n", 524288}}},
      {"scalarprod", {{"pairs", 256}, {"elements", 4096}}},
      {"fwt", {{"passes", 4}}},
      {"matmul_tiled", {{"n", 192}}},
      {"cfd", {{"width", 256}, {"height", 128}}},
      {"nn", {{"records", 524288}}},
      {"bitonic", {{"n", 65536}}},
      {"gaussian", {{"n", 96}}},
      {"stress_dram_read", {{"words", 524288}, {"blocks", 128}}},
      {"stress_dram_write", {{"words", 524288}, {"blocks", 128}}},
      {"stress_l2_read", {{"blocks", 64}}},
      {"stress_l2_write", {{"blocks", 64}}},
      {"stress_chase", {{"elements", 65536}, {"chains", 1024}, {"steps", 48}}}};
  return sizes;
}

// Kernels that go once through their data, which are larger than the L2: the parameter that is the
// number of elements, and bytes of each.
struct Streaming {
  const char* parameter;
  std::uint64_t bytes;
};
const std::map<std::string, Streaming, std::less<>>& streaming_workloads() {
  static const std::map<std::string, Streaming, std::less<>> rows{
      {"vecadd", {"n", 12}},
      {"nn", {"records", 12}},
      {"stress_dram_read", {"words", 16}},
      {"stress_dram_write", {"words", 16}}};
  return rows;
}

// The default parameters of a workload on a card whose L2 has so many bytes. Streaming workloads
// have at least one and a half times as much data: then nothing of a run is left in the L2 for the
// next one.
Parameters default_parameters(const std::string& name, std::uint64_t l2_bytes) {
  const auto known = sim_parameters().find(name);
  if (known == sim_parameters().end()) return {};
  Parameters parameters = known->second;
  if (const auto row = streaming_workloads().find(name); row != streaming_workloads().end()) {
    constexpr std::uint64_t grain = 65536;
    const std::uint64_t elements = ceil_div(l2_bytes * 3 / 2, row->second.bytes * grain) * grain;
    std::int64_t& size = parameters.at(row->second.parameter);
    size = std::max(size, static_cast<std::int64_t>(elements));
  }
  return parameters;
}

// As much of the scale `large` as behaves like all of it: buffers that stay in the L2 of a data
// centre card do so here, those that do not are twice its size and more, and of many kernels alike
// some are taken from the middle.
struct CardSize {
  Parameters parameters;
  sim::memory::KernelWindow window;
};
constexpr std::string_view card_scale = "card";
const std::map<std::string, CardSize, std::less<>>& card_sizes() {
  static const std::map<std::string, CardSize, std::less<>> sizes{
      {"matmul_tiled", {{{"n", 1024}}, {}}},
      {"fwt", {{{"passes", 7}}, {}}},
      {"vecadd", {{{"n", 8388608}}, {}}},
      {"scalarprod", {{{"pairs", 2048}, {"elements", 8192}}, {}}},
      {"bitonic", {{{"n", 4194304}}, {1, 6}}},
      {"cfd", {{{"width", 1024}, {"height", 1024}}, {}}},
      {"gaussian", {{{"n", 1024}}, {400, 6}}},
      {"nn", {{{"records", 8388608}}, {}}},
      {"stress_chase", {{{"elements", 4194304}, {"chains", 8192}, {"steps", 128}}, {}}},
      {"stress_dram_read", {{{"words", 8388608}, {"blocks", 1056}}, {}}},
      {"stress_dram_write", {{{"words", 8388608}, {"blocks", 1056}}, {}}},
      {"stress_l2_read", {{{"words", 1048576}, {"rounds", 16}, {"blocks", 1056}}, {}}},
      {"stress_l2_write", {{{"words", 1048576}, {"rounds", 4}, {"blocks", 1056}}, {}}},
      {"stress_atomics", {{{"counters", 65536}, {"rounds", 16}, {"blocks", 2112}}, {}}},
      {"stress_arithmetic", {{{"rounds", 1024}, {"blocks", 1056}}, {}}}};
  return sizes;
}

Result<gpu::Launch> sized_launch(const BundledSpec& wanted, std::string_view spec,
                                 std::uint64_t l2_bytes) {
  DEMARC_TRY(const workload::Workload* bundled, workload::find(wanted.name));
  gpu::LaunchFileOptions options;
  if (!wanted.parameters.empty()) {
    options.parameters = wanted.parameters;
  } else if (!wanted.scale) {
    options.parameters = default_parameters(bundled->name, l2_bytes);
  } else if (*wanted.scale == card_scale) {
    const auto known = card_sizes().find(bundled->name);
    if (known == card_sizes().end()) {
      return missing_capability("'{}': only the kernels of the study have the scale '{}'", spec,
                                card_scale);
    }
    options.parameters = known->second.parameters;
  } else if (*wanted.scale != "small") {
    options.scale = *wanted.scale;
  }
  return workload::instance(wanted.name, options);
}

Result<gpu::Launch> sim_launch_of(const WorkloadSpec& spec, std::string_view text,
                                  std::uint64_t l2_bytes) {
  if (const auto* file = std::get_if<LaunchSpec>(&spec)) return read_launch_file(*file);
  if (std::holds_alternative<StreamSpec>(spec)) {
    return missing_capability("an access stream has no PTX");
  }
  if (std::holds_alternative<CopySpec>(spec)) {
    return missing_capability("'{}': a simulated device has no copy engines; use cuda:N", text);
  }
  if (const auto* command = std::get_if<CommandSpec>(&spec)) {
    return missing_capability("'{}': a simulated device runs kernels, not commands", command->line);
  }
  return sized_launch(std::get<BundledSpec>(spec), text, l2_bytes);
}

sim::memory::KernelWindow window_of(const WorkloadSpec& spec) {
  const auto* wanted = std::get_if<BundledSpec>(&spec);
  if (wanted == nullptr || wanted->scale != card_scale) return {};
  const auto known = card_sizes().find(wanted->name);
  return known == card_sizes().end() ? sim::memory::KernelWindow{} : known->second.window;
}

Result<WorkloadCode> sim_code_of(const WorkloadSpec& spec, std::string_view text,
                                 std::uint32_t target, std::uint64_t l2_bytes) {
  WorkloadCode code;
  DEMARC_TRY(code.launch, sim_launch_of(spec, text, l2_bytes));
  DEMARC_TRY(code.ptx, workload::ptx_text(code.launch, target));
  return code;
}

std::uint64_t sim_digest(const gpu::Launch& launch, const gpu::Memory& memory) {
  std::uint64_t h = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (launch.buffers[i].output) h = hash_of(h, hash_of(std::span(memory[i])));
  }
  return h;
}

// Accesses from outside. They compute nothing, so every run has the same outputs; their addresses
// keep their places within pages of 2 MiB.
Result<SimWorkload> load_access_stream(const std::string& path) {
  constexpr std::uint64_t page = std::uint64_t{1} << 21U;
  DEMARC_TRY(const auto launch, sim::memory::read_access_stream(path));
  sim::Address first(~std::uint64_t{0});
  sim::Address last;
  sim::memory::Step step;
  for (const auto& kernel : launch->kernels) {
    for (const auto& block : kernel.blocks) {
      for (const auto& warp : block->warps) {
        std::size_t at = 0;
        for (warp.read(at, step); step.kind != sim::memory::StepKind::end; warp.read(at, step)) {
          for (std::size_t i = 0; i < step.count; ++i) {
            first = std::min(first, step.lines[i].line());
            last = std::max(last, step.lines[i].line());
          }
        }
      }
    }
  }
  if (first > last) return invalid_input("{}: the stream does not access memory", path);
  SimWorkload loaded;
  loaded.base = first - first.raw() % page;
  loaded.bytes = last - loaded.base + sim::memory::line_bytes;
  loaded.source = [launch] { return sim::memory::replay_launch(launch); };
  return loaded;
}

}  // namespace

Result<WorkloadCode> sim_workload_code(const std::string& spec, std::uint32_t target,
                                       std::uint64_t l2_bytes) {
  DEMARC_TRY(const WorkloadSpec parsed, parse_workload_spec(spec));
  return sim_code_of(parsed, spec, target, l2_bytes);
}

Result<SimWorkload> load_sim_workload(const std::string& text, std::uint32_t target,
                                      std::uint64_t l2_bytes) {
  DEMARC_TRY(const WorkloadSpec spec, parse_workload_spec(text));
  if (const auto* stream = std::get_if<StreamSpec>(&spec)) return load_access_stream(stream->path);
  DEMARC_TRY(auto code, sim_code_of(spec, text, target, l2_bytes));
  const gpu::Launch launch = std::move(code.launch);
  for (const gpu::Buffer& buffer : launch.buffers) {
    if (!buffer.host) continue;
    return missing_capability(
        "workload '{}': its buffer '{}' lies in host memory, which simulated GPUs lack", text,
        buffer.name);
  }
  const std::string& ptx = code.ptx;
  DEMARC_TRY(ptx::Module parsed, ptx::parse_whole(ptx, launch.ptx));
  auto module = std::make_shared<const ptx::Module>(std::move(parsed));
  SimWorkload loaded;
  const auto addresses = gpu::default_addresses(launch);
  loaded.base = sim::Address(addresses.empty() ? gpu::default_base_address : addresses.front());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    loaded.bytes =
        std::max(loaded.bytes, sim::Address(addresses[i]) + launch.buffers[i].bytes - loaded.base);
  }
  const sim::memory::KernelWindow window = window_of(spec);
  DEMARC_TRY(sim::memory::RecordedLaunch recorded,
             sim::memory::record_launch(*module, launch, 0, window));
  loaded.outputs.digest = sim_digest(launch, recorded.outcome.buffers);
  const bool whole = window.first + window.count >= launch.kernels.size();
  if (whole) {
    const auto checked =
        workload::check(launch, recorded.outcome.addresses, recorded.outcome.buffers);
    if (!checked) loaded.outputs.mismatch = checked.error().message;
  }
  if (!whole || recorded.launch->bytes() <= max_recorded_bytes) {
    loaded.source = [steps = recorded.launch] { return sim::memory::replay_launch(steps); };
  } else {
    loaded.source = [module, launch] { return sim::memory::emulate_on_the_fly(module, launch); };
  }
  return loaded;
}

}  // namespace demarc::study
