// Runs the kernels of a launch, one after the other.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <thread>

#include "block_loops.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/ptx/ir.hpp"
#include "lower/lower.hpp"
#include "lower/vector_registers.hpp"
#include "run.hpp"

namespace demarc::emulate {

namespace {

constexpr std::uint64_t max_cooperative_blocks = 8192;  // no card holds more

// How many blocks of the kernel an H100 holds.
std::uint32_t fitting_blocks(const Program& program) {
  constexpr std::uint32_t sms = 132;
  constexpr std::uint32_t max_blocks = 32;  // per SM
  constexpr std::uint32_t max_warps = 64;
  constexpr std::uint32_t shared_bytes = 228 << 10;
  constexpr std::uint32_t reserved_bytes = 1 << 10;  // of a block
  const std::uint32_t of_an_sm = std::min({max_blocks, max_warps / std::max(program.warps(), 1U),
                                           shared_bytes / (program.shared_bytes + reserved_bytes)});
  return sms * std::max(of_an_sm, 1U);
}

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Result<std::vector<std::byte>> pack_parameters(const ptx::Function& kernel,
                                               const gpu::KernelLaunch& launch,
                                               const std::vector<std::uint64_t>& addresses,
                                               std::vector<std::uint32_t>& offsets) {
  if (kernel.parameters.size() != launch.arguments.size()) {
    return invalid_input("kernel '{}' takes {} arguments, but the launch gives {}", kernel.name,
                         kernel.parameters.size(), launch.arguments.size());
  }
  std::vector<std::byte> packed;
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ptx::Variable& parameter = kernel.parameters[i];
    const std::vector<std::byte> bytes = gpu::pack_argument(launch.arguments[i], addresses);
    if (bytes.size() != parameter.byte_size()) {
      return invalid_input("argument {} of kernel '{}' has {} bytes, but the parameter '{}' has {}",
                           i + 1, kernel.name, bytes.size(), parameter.name, parameter.byte_size());
    }
    packed.resize(round_up(packed.size(), std::max(parameter.alignment(), 1U)));
    offsets.push_back(static_cast<std::uint32_t>(packed.size()));
    packed.insert(packed.end(), bytes.begin(), bytes.end());
  }
  return packed;
}

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

std::array<std::uint32_t, 3> to_array(const gpu::Dim3& dim) {
  return {dim.x, dim.y, dim.z};
}

// Where a plane alone has too many blocks, that plane's.
std::uint64_t blocks_of(const std::array<std::uint32_t, 3>& grid) {
  const std::uint64_t plane = std::uint64_t{grid[0]} * grid[1];
  return plane > UINT32_MAX ? plane : plane * grid[2];
}

void fill_thread_ids(Program& program) {
  const std::uint32_t warps = program.warps();
  program.tids.resize(std::size_t{warps} * 3 * warp_size);
  for (std::uint32_t thread = 0; thread < warps * warp_size; ++thread) {
    std::uint32_t* at =
        program.tids.data() + std::size_t{thread / warp_size} * 3 * warp_size + thread % warp_size;
    at[0] = thread % program.block[0];
    at[warp_size] = thread / program.block[0] % program.block[1];
    at[2 * warp_size] = thread / program.block[0] / program.block[1];
  }
}

TraceHeader header_of(const Program& program, const gpu::Launch& launch,
                      const gpu::KernelLaunch& kernel,
                      const std::vector<std::uint64_t>& addresses) {
  TraceHeader header;
  header.kernel = program.kernel;
  header.grid = program.grid;
  header.block = program.block;
  header.shared_bytes = program.shared_bytes;
  header.instructions.reserve(program.instructions.size());
  for (const CodeInstruction& instruction : program.instructions)
    header.instructions.push_back(instruction.trace);
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const auto use = gpu::used_buffer(launch, kernel.arguments[i]);
    if (!use) continue;
    header.buffers.push_back(
        {addresses[use->buffer], launch.buffers[use->buffer].bytes, static_cast<std::uint32_t>(i)});
  }
  return header;
}

}  // namespace

Result<bool> run_kernel(const ptx::Module& module, const gpu::Launch& launch,
                        const gpu::KernelLaunch& kernel_launch, ModuleMemory& module_memory,
                        const std::vector<Region>& buffer_regions, const Card& card,
                        const Options& options, TraceSink* sink, Outcome& outcome) {
  const ptx::Function* kernel = module.find_function(kernel_launch.kernel);
  if (kernel == nullptr || !kernel->is_entry) {
    return invalid_input("{}: there is no kernel '{}'", options.source, kernel_launch.kernel);
  }
  LowerRequest request;
  request.module = &module;
  request.kernel = kernel;
  request.memory = &module_memory;
  request.grid = to_array(kernel_launch.grid);
  request.block = to_array(kernel_launch.block);
  if (kernel_launch.cluster) request.cluster = to_array(*kernel_launch.cluster);
  request.dynamic_shared_bytes = kernel_launch.dynamic_shared_bytes;
  request.sms = card.sms;
  request.source = options.source;
  request.tables = handler_tables(outcome.instruction_set);
  DEMARC_TRY(request.parameters,
             pack_parameters(*kernel, kernel_launch, outcome.addresses, request.parameter_offsets));
  for (const gpu::Image& image : launch.images)
    request.images.push_back({image, outcome.addresses[image.buffer] + image.offset});
  DEMARC_TRY(const std::unique_ptr<Program> program, lower(request));
  if (program->shared_bytes > gpu::max_shared_bytes) {
    return invalid_input(
        "kernel '{}': {} bytes of shared memory, {} of them dynamic; a GPU takes at most {}",
        kernel->name, program->shared_bytes, kernel_launch.dynamic_shared_bytes,
        gpu::max_shared_bytes);
  }
  program->check_races = options.check_races && program->shared_bytes > 0;
  program->check_uninitialised = options.check_uninitialised;
  program->instruction_limit = options.instruction_limit;
  program->sm_of_block = card.sm_of_block;
  program->time_ns = card.time_ns;
  fill_thread_ids(*program);
  program->regions = module_memory.regions;
  program->regions.insert(program->regions.end(), buffer_regions.begin(), buffer_regions.end());
  if (program->allocates && !module_memory.heap)
    module_memory.heap = std::make_unique<DeviceHeap>(options.check_uninitialised);
  program->heap = module_memory.heap.get();
  if (program->grid_workspace) {
    Region region;
    region.low = GridWorkspace::base;
    region.high = region.low + GridWorkspace::bytes;
    region.delta =
        reinterpret_cast<std::uint64_t>(program->grid_workspace->memory.data()) - region.low;
    program->regions.push_back(region);
  }
  std::sort(program->regions.begin(), program->regions.end(),
            [](const Region& a, const Region& b) { return a.low < b.low; });
  program->constant_region.high = program->constants.size();
  program->constant_region.delta = reinterpret_cast<std::uint64_t>(program->constants.data());
  program->constant_region.writable = false;
  program->parameter_region.high = program->parameters.size();
  program->parameter_region.delta = reinterpret_cast<std::uint64_t>(program->parameters.data());
  program->parameter_region.writable = false;

  const std::uint64_t blocks = blocks_of(program->grid);
  if (blocks > 0xffffffffU)
    return invalid_input("kernel '{}': a grid of {} blocks; the limit is 2^32 - 1", kernel->name,
                         blocks);
  Tracing tracing;
  if (sink != nullptr) {
    DEMARC_CHECK(sink->begin_kernel(header_of(*program, launch, kernel_launch, outcome.addresses)));
    tracing = {.on = true, .instructions = sink->wants_instructions()};
  }
  for (const ptx::Diagnostic& approximation : program->approximations) {
    auto& known = outcome.approximations;
    if (std::none_of(known.begin(), known.end(), [&](const ptx::Diagnostic& other) {
          return other.text == approximation.text;
        }))
      known.push_back(approximation);
  }
  KernelStatistics statistics;
  statistics.kernel = program->kernel;
  statistics.blocks = blocks;
  statistics.warps = blocks * program->warps();
  outcome.kernels.push_back(statistics);
  unsigned threads =
      options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  threads = static_cast<unsigned>(std::min<std::uint64_t>(threads, blocks));
  // Blocks that wait for the whole grid are all there at once.
  std::uint32_t resident = card.resident_blocks;
  if (program->grid_workspace) {
    if (blocks > max_cooperative_blocks) {
      return invalid_input(
          "kernel '{}' waits for its whole grid of {} blocks, but at most {} can run at once",
          kernel->name, blocks, max_cooperative_blocks);
    }
    resident = std::max(resident, static_cast<std::uint32_t>(blocks));
  }
  if (program->in_clusters) {
    const std::uint64_t span = std::min(program->cluster.span(program->grid), blocks);
    resident = std::max(resident, static_cast<std::uint32_t>(span));
  }
  const bool side_by_side = resident > 1 || program->in_clusters;
  const bool in_turns = side_by_side || (program->polls && blocks > 1);
  std::uint32_t max_resident = resident;
  if (program->polls && !side_by_side) {
    max_resident =
        options.resident_blocks != 0 ? options.resident_blocks : fitting_blocks(*program);
  }
  if (program->ordered || (in_turns && !side_by_side))
    outcome.ordered_kernels.push_back(program->kernel);
  if (program->ordered || in_turns) threads = 1;
  if (side_by_side) program->turn = turn_among_blocks;
  outcome.threads = std::max(outcome.threads, threads);
  const auto start = std::chrono::steady_clock::now();
  Collector collector(sink, outcome, options.finding_limit, std::size_t{4} * threads);
  BlockWork work{.program = *program,
                 .collector = collector,
                 .blocks = static_cast<std::uint32_t>(blocks),
                 .at_once = blocks_at_once(static_cast<std::uint32_t>(blocks), threads),
                 .tracing = tracing,
                 .plain_atomics = threads == 1,
                 .progress = options.progress};
  std::atomic<double> cpu_seconds{0};
  const auto worker = [&](const std::function<void()>& body) {
    const double began = thread_cpu_seconds();
    try {
      body();
    } catch (...) {
      collector.abandon(std::current_exception());  // out of memory
    }
    cpu_seconds.fetch_add(thread_cpu_seconds() - began);
  };
  std::vector<std::thread> others;
  const auto call_others = [&] {
    for (unsigned i = 1; i < threads; ++i)
      others.emplace_back([&] { worker([&] { run_blocks(work); }); });
  };
  worker([&] {
    if (in_turns) {
      run_in_turns(*program, collector, work.blocks, {resident, max_resident}, tracing,
                   options.progress);
    } else {
      run_blocks(work, call_others, true);
    }
  });
  for (std::thread& other : others) other.join();
  outcome.kernels.back().seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.kernels.back().cpu_seconds = cpu_seconds.load();
  collector.rethrow();
  if (collector.failed()) return tl::unexpected(collector.error());
  if (sink != nullptr) DEMARC_CHECK(sink->end_kernel());
  return !collector.ended();
}

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
  if (outcome.buffers.size() != launch.buffers.size()) {
    return invalid_input("the launch has {} buffers, but {} contents were given",
                         launch.buffers.size(), outcome.buffers.size());
  }
  std::vector<Region> regions;
  std::deque<std::vector<std::uint8_t>> shadows;
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
  for (const gpu::KernelLaunch& kernel : launch.kernels) {
    own = static_cast<double>(kernel.grid.count()) / blocks;
    DEMARC_TRY(const bool ended, run_kernel(module, launch, kernel, module_memory, regions, {},
                                            kernel_options, sink, outcome));
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
