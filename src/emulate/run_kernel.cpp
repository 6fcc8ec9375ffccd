// Runs a kernel of a launch: makes its program, places its memory, and shares its blocks out.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

#include "block_loops.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/ptx/ir.hpp"
#include "lower/lower.hpp"
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
  constexpr std::uint32_t reserved_bytes = 1 << 10;  // in each block
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

std::array<std::uint32_t, 3> to_array(const gpu::Dim3& dim) {
  return {dim.x, dim.y, dim.z};
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

Result<std::unique_ptr<Program>> lowered(const Surroundings& given,
                                         const gpu::KernelLaunch& launched,
                                         const Outcome& outcome) {
  const ptx::Function* kernel = given.module.find_function(launched.kernel);
  if (kernel == nullptr || !kernel->is_entry) {
    return invalid_input("{}: there is no kernel '{}'", given.options.source, launched.kernel);
  }
  LowerRequest request;
  request.module = &given.module;
  request.kernel = kernel;
  request.memory = &given.memory;
  request.grid = to_array(launched.grid);
  request.block = to_array(launched.block);
  if (launched.cluster) request.cluster = to_array(*launched.cluster);
  request.dynamic_shared_bytes = launched.dynamic_shared_bytes;
  request.sms = given.card.sms;
  request.source = given.options.source;
  request.tables = handler_tables(outcome.instruction_set);
  DEMARC_TRY(request.parameters,
             pack_parameters(*kernel, launched, outcome.addresses, request.parameter_offsets));
  for (const gpu::Image& image : given.launch.images)
    request.images.push_back({image, outcome.addresses[image.buffer] + image.offset});
  DEMARC_TRY(std::unique_ptr<Program> program, lower(request));
  if (program->shared_bytes > gpu::max_shared_bytes) {
    return invalid_input(
        "kernel '{}': {} bytes of shared memory, {} of them dynamic; a GPU takes at most {}",
        kernel->name, program->shared_bytes, launched.dynamic_shared_bytes, gpu::max_shared_bytes);
  }
  return program;
}

void take_over_options(const Surroundings& given, Program& program) {
  program.check_races = given.options.check_races && program.shared_bytes > 0;
  program.check_uninitialised = given.options.check_uninitialised;
  program.instruction_limit = given.options.instruction_limit;
  program.sm_of_block = given.card.sm_of_block;
  program.time_ns = given.card.time_ns;
}

// Memory that the program owns and does not write.
Region bank_of(std::vector<std::byte>& content) {
  Region bank;
  bank.high = content.size();
  bank.delta = reinterpret_cast<std::uint64_t>(content.data());
  bank.writable = false;
  return bank;
}

void place_memory(const Surroundings& given, Program& program) {
  ModuleMemory& memory = given.memory;
  program.regions = memory.regions;
  program.regions.insert(program.regions.end(), given.buffers.begin(), given.buffers.end());
  if (program.allocates && !memory.heap)
    memory.heap = std::make_unique<DeviceHeap>(given.options.check_uninitialised);
  program.heap = memory.heap.get();
  if (program.grid_workspace) {
    Region region;
    region.low = GridWorkspace::base;
    region.high = region.low + GridWorkspace::bytes;
    region.delta =
        reinterpret_cast<std::uint64_t>(program.grid_workspace->memory.data()) - region.low;
    program.regions.push_back(region);
  }
  std::sort(program.regions.begin(), program.regions.end(),
            [](const Region& a, const Region& b) { return a.low < b.low; });
  program.constant_region = bank_of(program.constants);
  program.parameter_region = bank_of(program.parameters);
}

Result<std::uint32_t> number_of_blocks(const Program& program) {
  // Where a plane alone has too many blocks, that plane's.
  const std::uint64_t plane = std::uint64_t{program.grid[0]} * program.grid[1];
  const std::uint64_t blocks = plane > UINT32_MAX ? plane : plane * program.grid[2];
  if (blocks > UINT32_MAX) {
    return invalid_input("kernel '{}': a grid of {} blocks; the limit is 2^32 - 1", program.kernel,
                         blocks);
  }
  return static_cast<std::uint32_t>(blocks);
}

Result<Tracing> begin_trace(const Surroundings& given, const gpu::KernelLaunch& launched,
                            const Program& program, const Outcome& outcome) {
  if (given.sink == nullptr) return Tracing{};
  DEMARC_CHECK(
      given.sink->begin_kernel(header_of(program, given.launch, launched, outcome.addresses)));
  return Tracing{.on = true, .instructions = given.sink->wants_instructions()};
}

void add_kernel(const Program& program, std::uint32_t blocks, Outcome& outcome) {
  auto& known = outcome.approximations;
  for (const ptx::Diagnostic& approximation : program.approximations) {
    if (std::none_of(known.begin(), known.end(), [&](const ptx::Diagnostic& other) {
          return other.text == approximation.text;
        }))
      known.push_back(approximation);
  }
  KernelStatistics statistics;
  statistics.kernel = program.kernel;
  statistics.blocks = blocks;
  statistics.warps = std::uint64_t{blocks} * program.warps();
  outcome.kernels.push_back(statistics);
}

// Who runs the blocks, and how many are there at once.
struct BlockPlan {
  Residents resident;
  bool side_by_side = false;  // from the start
  bool in_turns = false;      // on one core, several there at once
  bool ordered = false;       // see Outcome::ordered_kernels
  unsigned threads = 1;
};

Result<BlockPlan> plan_blocks(const Surroundings& given, const Program& program,
                              std::uint32_t blocks) {
  BlockPlan plan;
  std::uint32_t& resident = plan.resident.wanted;
  resident = given.card.resident_blocks;
  // Blocks that wait for the whole grid are all there at once.
  if (program.grid_workspace) {
    if (blocks > max_cooperative_blocks) {
      return invalid_input(
          "kernel '{}' waits for its whole grid of {} blocks, but at most {} can run at once",
          program.kernel, blocks, max_cooperative_blocks);
    }
    resident = std::max(resident, blocks);
  }
  if (program.in_clusters) {
    const std::uint64_t span = std::min<std::uint64_t>(program.cluster.span(program.grid), blocks);
    resident = std::max(resident, static_cast<std::uint32_t>(span));
  }
  plan.side_by_side = resident > 1 || program.in_clusters;
  plan.in_turns = plan.side_by_side || (program.polls && blocks > 1);
  plan.ordered = program.ordered || (plan.in_turns && !plan.side_by_side);
  plan.resident.most = resident;
  if (program.polls && !plan.side_by_side) {
    const std::uint32_t asked = given.options.resident_blocks;
    plan.resident.most = asked != 0 ? asked : fitting_blocks(program);
  }
  if (!program.ordered && !plan.in_turns) {
    const unsigned asked = given.options.threads;
    const unsigned most = asked != 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
    plan.threads = std::min(most, blocks);
  }
  return plan;
}

void run_all_blocks(const BlockPlan& plan, BlockWork& work, KernelStatistics& statistics) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<double> cpu_seconds{0};
  const auto worker = [&](const std::function<void()>& body) {
    const double began = thread_cpu_seconds();
    try {
      body();
    } catch (...) {
      work.collector.abandon(std::current_exception());  // out of memory
    }
    cpu_seconds.fetch_add(thread_cpu_seconds() - began);
  };
  std::vector<std::thread> others;
  const auto call_others = [&] {
    for (unsigned i = 1; i < plan.threads; ++i)
      others.emplace_back([&] { worker([&] { run_blocks(work); }); });
  };
  worker([&] {
    if (plan.in_turns) {
      run_in_turns(work.program, work.collector, work.blocks, plan.resident, work.tracing,
                   work.progress);
    } else {
      run_blocks(work, call_others, true);
    }
  });
  for (std::thread& other : others) other.join();
  statistics.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  statistics.cpu_seconds = cpu_seconds.load();
}

}  // namespace

Result<bool> run_kernel(const Surroundings& given, const gpu::KernelLaunch& launched,
                        Outcome& outcome) {
  DEMARC_TRY(const std::unique_ptr<Program> program, lowered(given, launched, outcome));
  take_over_options(given, *program);
  fill_thread_ids(*program);
  place_memory(given, *program);
  DEMARC_TRY(const std::uint32_t blocks, number_of_blocks(*program));
  DEMARC_TRY(const Tracing tracing, begin_trace(given, launched, *program, outcome));
  add_kernel(*program, blocks, outcome);
  DEMARC_TRY(const BlockPlan plan, plan_blocks(given, *program, blocks));
  if (plan.side_by_side) program->turn = turn_among_blocks;
  if (plan.ordered) outcome.ordered_kernels.push_back(program->kernel);
  outcome.threads = std::max(outcome.threads, plan.threads);
  Collector collector(given.sink, outcome, given.options.finding_limit,
                      std::size_t{4} * plan.threads);
  BlockWork work{.program = *program,
                 .collector = collector,
                 .blocks = blocks,
                 .at_once = blocks_at_once(blocks, plan.threads),
                 .tracing = tracing,
                 .plain_atomics = plan.threads == 1,
                 .progress = given.options.progress};
  run_all_blocks(plan, work, outcome.kernels.back());
  collector.rethrow();
  if (collector.failed()) return tl::unexpected(collector.error());
  if (given.sink != nullptr) DEMARC_CHECK(given.sink->end_kernel());
  return !collector.ended();
}

}  // namespace demarc::emulate
