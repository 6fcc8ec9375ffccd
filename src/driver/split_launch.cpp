// Runs a launch on several cards: puts the pages where the plan has them, and gives each card an
// equal run of blocks.
#include "demarc/driver/split_launch.hpp"

#include <algorithm>

#include "demarc/base/rounding.hpp"
#include "demarc/driver/mapped_pieces.hpp"
#include "demarc/ptx/grid_part.hpp"
#include "demarc/ptx/parser.hpp"
#include "kernel_call.hpp"

namespace demarc::cuda {
namespace {

// What a card has of the launch.
struct Part {
  GpuPointer gpu;
  Module module;
  Stream stream;
  Event begin;
  Event end;

  static Result<Part> make(const GpuPointer& gpu, const std::string& image,
                           const std::string& source) {
    DEMARC_CHECK(gpu->make_current());
    DEMARC_TRY(Module module, Module::load(gpu, image, source));
    DEMARC_TRY(Stream stream, Stream::create(gpu));
    DEMARC_TRY(Event begin, Event::create(gpu));
    DEMARC_TRY(Event end, Event::create(gpu));
    return Part{gpu, std::move(module), std::move(stream), std::move(begin), std::move(end)};
  }
};

// Blocks [first, end) of the grid.
struct BlockRun {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};
BlockRun share_of(std::uint64_t blocks, std::size_t part, std::size_t parts) {
  return {ceil_div(part * blocks, parts), ceil_div((part + 1) * blocks, parts)};
}

Result<void> refuse_host_buffers(const gpu::Launch& launch) {
  for (const gpu::Buffer& buffer : launch.buffers) {
    if (!buffer.host) continue;
    return invalid_input(
        "buffer '{}' lies in host memory, but a launch on several cards has its pages on "
        "the cards",
        buffer.name);
  }
  return {};
}

Result<void> check_holds(const gpu::Launch& launch, const std::vector<std::uint64_t>& addresses,
                         const MappedPieces& memory) {
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    if (addresses[i] + launch.buffers[i].bytes <= memory.address() + memory.bytes()) continue;
    return invalid_input("the pages end before the end of buffer '{}'", launch.buffers[i].name);
  }
  return {};
}

Result<SplitRun::Kernel> run_parts(std::vector<Part>& parts, const gpu::KernelLaunch& kernel,
                                   const std::vector<std::uint64_t>& addresses,
                                   std::chrono::milliseconds limit) {
  SplitRun::Kernel run{kernel.kernel, std::vector<double>(parts.size())};
  const auto blocks_of = [&](std::size_t part) {
    return share_of(kernel.grid.count(), part, parts.size());
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const BlockRun blocks = blocks_of(i);
    if (blocks.first == blocks.end) continue;
    Part& part = parts[i];
    DEMARC_CHECK(part.gpu->make_current());
    DEMARC_TRY(KernelCall call, KernelCall::prepare(part.module, kernel, addresses,
                                                    {static_cast<std::uint32_t>(blocks.first),
                                                     kernel.grid.x, kernel.grid.y, kernel.grid.z}));
    LaunchShape shape = shape_of(kernel);
    shape.grid[0] = static_cast<std::uint32_t>(blocks.end - blocks.first);
    shape.grid[1] = shape.grid[2] = 1;
    DEMARC_CHECK(part.begin.record(part.stream));
    DEMARC_CHECK(call.launch(part.stream, shape));
    DEMARC_CHECK(part.end.record(part.stream));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const BlockRun blocks = blocks_of(i);
    if (blocks.first == blocks.end) continue;
    DEMARC_CHECK(parts[i].gpu->make_current());
    DEMARC_CHECK(parts[i].stream.wait(limit));
    DEMARC_TRY(run.milliseconds[i], parts[i].end.milliseconds_since(parts[i].begin));
  }
  return run;
}

Result<void> copy_in(const Gpu& gpu, const std::vector<std::uint64_t>& addresses,
                     const gpu::Memory& buffers) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    DEMARC_CHECK(
        gpu.check(gpu.api().cuMemcpyHtoD_v2(addresses[i], buffers[i].data(), buffers[i].size()),
                  "cannot fill a buffer"));
  }
  return gpu.check(gpu.api().cuStreamSynchronize(nullptr), "cannot fill the buffers");
}

Result<void> copy_out(const Gpu& gpu, const std::vector<std::uint64_t>& addresses,
                      gpu::Memory& buffers) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    DEMARC_CHECK(
        gpu.check(gpu.api().cuMemcpyDtoH_v2(buffers[i].data(), addresses[i], buffers[i].size()),
                  "cannot read a buffer"));
  }
  return {};
}

}  // namespace

Result<SplitRun> run_split(const std::vector<GpuPointer>& gpus, const gpu::Launch& launch,
                           const std::string& image, const std::string& source,
                           const SplitPlan& plan, std::chrono::milliseconds limit) {
  DEMARC_CHECK(gpu::refuse_fixed_addresses(launch));
  DEMARC_CHECK(gpu::refuse_clusters(launch, "parts of a grid on several cards do"));
  for (const gpu::KernelLaunch& kernel : launch.kernels)
    DEMARC_CHECK(gpu::refuse_images(kernel, "parts of a grid on several cards do"));
  DEMARC_CHECK(refuse_host_buffers(launch));
  DEMARC_TRY(const ptx::Module module, ptx::parse_whole(image, source));
  DEMARC_TRY(const ptx::Module split, ptx::rewrite_grid_part(module));
  DEMARC_TRY(const MappedPieces memory, MappedPieces::create(gpus, plan.owners, plan.page_bytes));
  SplitRun run;
  run.addresses = gpu::default_addresses(launch, memory.address());
  DEMARC_CHECK(check_holds(launch, run.addresses, memory));
  DEMARC_TRY(const gpu::Memory first, gpu::initial_memory(launch, run.addresses));
  std::vector<Part> parts;
  for (const GpuPointer& gpu : gpus) {
    DEMARC_TRY(Part part, Part::make(gpu, *split.text, source));
    DEMARC_CHECK(set_variables(gpu, part.module, launch, run.addresses));
    parts.push_back(std::move(part));
  }
  for (std::uint32_t i = 0; i < plan.runs; ++i) {
    DEMARC_CHECK(gpus.front()->make_current());
    DEMARC_CHECK(copy_in(*gpus.front(), run.addresses, first));
    auto& kernels = run.kernels.emplace_back();
    for (const gpu::KernelLaunch& kernel : launch.kernels) {
      DEMARC_TRY(SplitRun::Kernel one, run_parts(parts, kernel, run.addresses, limit));
      kernels.push_back(std::move(one));
    }
  }
  DEMARC_CHECK(gpus.front()->make_current());
  run.buffers = first;
  DEMARC_CHECK(copy_out(*gpus.front(), run.addresses, run.buffers));
  return run;
}

}  // namespace demarc::cuda
