// Launches the probe kernels and reads where blocks ran and how long L2 hits took.
#include "demarc/card/probe_kernels.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "cuda_probes_ptx.hpp"
#include "named_sms.hpp"

namespace demarc::cuda {
namespace {

constexpr std::array<const char*, 5> probe_names = {"demarc_idle", "demarc_where", "demarc_latency",
                                                    "demarc_self_lines", "demarc_affine"};
constexpr std::array<std::uint32_t, 6> cluster_sizes = {16, 8, 4, 2, 12, 6};
constexpr std::uint64_t cluster_spin_cycles = 20000;
constexpr double hops = 8;

}  // namespace

Result<ProbeKernels> ProbeKernels::load(const GpuPointer& gpu, SmNumbers numbers) {
  const auto capability = gpu->compute_capability();
  const gpu::EmbeddedPtx* image =
      gpu::find_ptx(embedded::cuda_probes(), "probes", capability.number());
  if (image == nullptr) {
    return missing_capability("{}: no probe kernels for compute capability {}.{}", gpu->name(),
                              capability.major, capability.minor);
  }
  std::string code(image->text);
  if (numbers == SmNumbers::of_card) {
    DEMARC_TRY(code, code_that_names_sms(gpu, image->text, "probes.ptx"));
  }
  DEMARC_TRY(Module module, Module::load(gpu, code, "probes.ptx"));
  std::vector<Function> functions;
  for (const char* name : probe_names) {
    DEMARC_TRY(Function function, module.function(name));
    functions.push_back(std::move(function));
  }
  return ProbeKernels(std::move(module), std::move(functions), numbers);
}

std::uint32_t ProbeKernels::counters() const {
  return numbers_ == SmNumbers::of_card ? max_named_sms : sms();
}

std::uint64_t Placement::total() const {
  return std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0});
}

std::vector<gpu::SmIndex> Placement::used_sms() const {
  std::vector<gpu::SmIndex> used;
  for (const gpu::SmIndex sm : blocks.keys()) {
    if (blocks[sm] != 0) used.push_back(sm);
  }
  return used;
}

std::uint64_t Placement::outside(const std::vector<gpu::SmIndex>& allowed) const {
  std::uint64_t count = 0;
  for (const gpu::SmIndex sm : blocks.keys()) {
    if (!std::binary_search(allowed.begin(), allowed.end(), sm)) count += blocks[sm];
  }
  return count;
}

Result<DeviceBuffer> placement_counters(const GpuPointer& gpu, const ProbeKernels& kernels) {
  DEMARC_TRY(DeviceBuffer counters, DeviceBuffer::allocate<std::uint32_t>(gpu, kernels.counters()));
  DEMARC_CHECK(counters.fill(0));
  return counters;
}

Result<Placement> read_placement(const DeviceBuffer& counters, const ProbeKernels& kernels) {
  Placement placement;
  DEMARC_TRY(placement.blocks, counters.read<std::uint32_t>(kernels.counters()));
  // Few of the numbers that there may be belong to SMs.
  const auto used = placement.used_sms();
  const std::size_t numbers = used.empty() ? 0 : used.back().raw() + 1;
  placement.blocks.resize(std::max<std::size_t>(kernels.sms(), numbers));
  return placement;
}

Result<Placement> probe_placement(const Stream& stream, const ProbeKernels& kernels,
                                  const LaunchShape& shape, std::uint64_t spin_cycles) {
  DEMARC_TRY(const DeviceBuffer counts, placement_counters(stream.gpu(), kernels));
  DEMARC_CHECK(
      launch(stream, kernels.where(), shape, counts.address(), DevicePointer{0}, spin_cycles));
  DEMARC_CHECK(stream.wait());
  DEMARC_TRY(Placement placement, read_placement(counts, kernels));
  const std::uint64_t launched = std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  if (placement.total() != launched) {
    return check_failed("the placement probe counted {} of {} blocks", placement.total(), launched);
  }
  return placement;
}

Result<std::uint32_t> whole_sm_shared_bytes(const Function& function) {
  DEMARC_TRY(const int most, function.gpu()->attribute(attribute_shared_bytes_per_block_optin));
  DEMARC_TRY(const int own, function.attribute(function_shared_bytes));
  const int bytes = most - own;
  DEMARC_CHECK(function.set(function_max_dynamic_shared_bytes, bytes));
  return static_cast<std::uint32_t>(bytes);
}

Result<std::vector<std::vector<gpu::SmIndex>>> probe_clusters(const Stream& stream,
                                                              const ProbeKernels& kernels) {
  std::vector<std::vector<gpu::SmIndex>> groups;
  const GpuPointer& gpu = stream.gpu();
  const auto supported = gpu->attribute(attribute_cluster_launch);
  if (!supported || *supported == 0 || gpu->api().cuLaunchKernelEx == nullptr) return groups;
  DEMARC_CHECK(kernels.where().set(function_non_portable_cluster, 1));
  DEMARC_TRY(const std::uint32_t shared, whole_sm_shared_bytes(kernels.where()));
  const std::uint32_t sms = gpu->sm_count();
  for (const std::uint32_t size : cluster_sizes) {
    const std::uint32_t blocks = std::max(2 * sms / size, 1U) * size;
    DEMARC_TRY(const DeviceBuffer counts, placement_counters(gpu, kernels));
    DEMARC_TRY(const DeviceBuffer places, DeviceBuffer::allocate<std::uint32_t>(gpu, blocks));
    LaunchShape shape = LaunchShape::line(blocks, 32);
    shape.shared_bytes = shared;
    shape.cluster[0] = size;
    const auto launched = launch(stream, kernels.where(), shape, counts.address(), places.address(),
                                 cluster_spin_cycles);
    if (!launched) {
      // A card need not offer every size; the ones it offers are enough.
      if (launched.error().kind != ErrorKind::check_failed) continue;
      return tl::unexpected(launched.error());
    }
    DEMARC_CHECK(stream.wait());
    DEMARC_TRY(const auto sm_of_block, places.read<gpu::SmIndex>(blocks));
    for (std::uint32_t first = 0; first < blocks; first += size) {
      groups.emplace_back(sm_of_block.begin() + first, sm_of_block.begin() + first + size);
    }
  }
  return groups;
}

Result<SmLatencies> probe_latencies(const Stream& stream, const ProbeKernels& kernels,
                                    const DeviceBuffer& buffer, std::uint64_t stride,
                                    std::uint32_t lines, std::uint32_t repeats) {
  if (buffer.bytes() < stride * lines) {
    return invalid_input("{} lines every {} bytes do not fit into a buffer of {} bytes", lines,
                         stride, buffer.bytes());
  }
  const GpuPointer& gpu = stream.gpu();
  const std::uint32_t sms = gpu->sm_count();
  DEMARC_CHECK(launch(stream, kernels.self_lines(), LaunchShape::line((lines + 255) / 256, 256),
                      buffer.address(), stride, lines));
  DEMARC_TRY(const DeviceBuffer taken, DeviceBuffer::allocate<std::uint32_t>(gpu, sms));
  DEMARC_TRY(const DeviceBuffer cycles,
             DeviceBuffer::allocate<std::uint32_t>(gpu, std::size_t{sms} * lines));
  DEMARC_CHECK(taken.fill(0));
  DEMARC_TRY(const std::uint32_t shared, whole_sm_shared_bytes(kernels.latency()));
  LaunchShape shape = LaunchShape::line(2 * sms, 32);
  shape.shared_bytes = shared;
  for (std::uint32_t sm = 0; sm < sms; ++sm) {
    DEMARC_CHECK(launch(stream, kernels.latency(), shape, buffer.address(), stride, lines, repeats,
                        sm, std::uint32_t{0}, taken.address() + 4ULL * sm,
                        cycles.address() + 4ULL * sm * lines));
  }
  DEMARC_CHECK(stream.wait());
  DEMARC_TRY(const auto reached, taken.read<std::uint32_t>(sms));
  DEMARC_TRY(const auto raw, cycles.read<std::uint32_t>(std::size_t{sms} * lines));
  SmLatencies latency(sms);
  for (std::uint32_t sm = 0; sm < sms; ++sm) {
    if (reached[sm] == 0) continue;  // no block landed there: the row stays empty
    for (std::uint32_t line = 0; line < lines; ++line) {
      latency[gpu::SmIndex(sm)].push_back(raw[std::size_t{sm} * lines + line] / hops);
    }
  }
  return latency;
}

}  // namespace demarc::cuda
