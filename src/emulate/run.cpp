// Runs the kernels of a launch, one after the other.
#include <algorithm>
#include <deque>

#include "demarc/ptx/ir.hpp"
#include "lower/vector_registers.hpp"
#include "run.hpp"

namespace demarc::emulate {

namespace {

Result<void> set_variables(const ptx::Module& module, const gpu::Launch& launch,
                           const std::vector<std::uint64_t>& addresses, const std::string& source,
                           ModuleMemory& memory) {
  for (std::size_t i = 0; i < launch.variables.size(); ++i) {
    const std::string& name = launch.variables[i].name;
    const ptx::Variable* const variable = module.find_memory(name);
    if (variable == nullptr) {
      return invalid_input("{}: there is no variable '{}' of constant or global memory", source,
                           name);
    }
    DEMARC_CHECK(gpu::fill_variable(launch, i, addresses, content_of(memory, *variable)));
  }
  return {};
}

// Where the contents of the buffers lie. `shadows`: of buffers that are not written yet.
Result<std::vector<Region>> buffer_regions(const gpu::Launch& launch, const Options& options,
                                           Outcome& outcome,
                                           std::deque<std::vector<std::uint8_t>>& shadows) {
  if (outcome.buffers.size() != launch.buffers.size()) {
    return invalid_input("the launch has {} buffers, but {} contents were given",
                         launch.buffers.size(), outcome.buffers.size());
  }
  std::vector<Region> regions;
  for (std::size_t i = 0; i < outcome.buffers.size(); ++i) {
    if (outcome.buffers[i].size() != launch.buffers[i].bytes) {
      return invalid_input("buffer {} has {} bytes, but its content has {}", i,
                           launch.buffers[i].bytes, outcome.buffers[i].size());
    }
    Region region;
    region.low = outcome.addresses[i];
    region.high = region.low + outcome.buffers[i].size();
    region.delta = reinterpret_cast<std::uint64_t>(outcome.buffers[i].data()) - region.low;
    const bool blank =
        std::find(options.uninitialised_buffers.begin(), options.uninitialised_buffers.end(), i) !=
        options.uninitialised_buffers.end();
    if (blank && options.check_uninitialised) {
      shadows.emplace_back(outcome.buffers[i].size());
      region.shadow = shadows.back().data();
    }
    if (!outcome.buffers[i].empty()) regions.push_back(region);
  }
  return regions;
}

}  // namespace

Result<InstructionSet> chosen_instruction_set(const Options& options) {
  const InstructionSet widest = widest_instruction_set();
  if (options.instruction_set == InstructionSet::automatic) return widest;
  if (options.instruction_set > widest) {
    return missing_capability("this CPU has no {}; the widest is {}",
                              to_string(options.instruction_set), to_string(widest));
  }
  return options.instruction_set;
}

Result<Outcome> run_on(const ptx::Module& given, const gpu::Launch& launch, gpu::Memory memory,
                       const Options& options, TraceSink* sink) {
  DEMARC_CHECK(gpu::validate(launch));
  const std::optional<ptx::Module> scalar = without_vector_registers(given);
  const ptx::Module& module = scalar ? *scalar : given;
  Outcome outcome;
  outcome.addresses = gpu::default_addresses(launch);
  outcome.buffers = std::move(memory);
  DEMARC_TRY(outcome.instruction_set, chosen_instruction_set(options));
  std::deque<std::vector<std::uint8_t>> shadows;
  DEMARC_TRY(const std::vector<Region> regions, buffer_regions(launch, options, outcome, shadows));
  DEMARC_TRY(ModuleMemory module_memory,
             place_module_memory(module, options.source, VariablePlaces::own));
  DEMARC_CHECK(set_variables(module, launch, outcome.addresses, options.source, module_memory));
  double blocks = 0;
  for (const gpu::KernelLaunch& kernel : launch.kernels)
    blocks += static_cast<double>(kernel.grid.count());
  double before = 0;  // share of the blocks
  double own = 0;     // of the kernel that runs
  Options kernel_options = options;
  if (options.progress) {
    kernel_options.progress = [&](double share, std::string_view what) {
      options.progress(before + own * share, what);
    };
  }
  const Card card;
  const Surroundings surroundings{.module = module,
                                  .launch = launch,
                                  .memory = module_memory,
                                  .buffers = regions,
                                  .card = card,
                                  .options = kernel_options,
                                  .sink = sink};
  for (const gpu::KernelLaunch& kernel : launch.kernels) {
    own = static_cast<double>(kernel.grid.count()) / blocks;
    DEMARC_TRY(const bool ended, run_kernel(surroundings, kernel, outcome));
    if (!ended) break;
    before += own;
  }
  if (sink != nullptr) DEMARC_CHECK(sink->end());
  return outcome;
}

Result<Outcome> run(const ptx::Module& module, const gpu::Launch& launch, const Options& options,
                    TraceSink* sink) {
  DEMARC_CHECK(gpu::validate(launch));
  const auto addresses = gpu::default_addresses(launch);
  DEMARC_TRY(gpu::Memory memory, gpu::initial_memory(launch, addresses));
  return run_on(module, launch, std::move(memory), options, sink);
}

}  // namespace demarc::emulate
