// Kernels that the stand-in does not know by name: their PTX runs in the emulator, on the memory
// that has been allocated and on the SMs that the launch was given.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "demarc/ptx/parser.hpp"
#include "fake_launch.hpp"

namespace demarc::fake {
namespace {

constexpr std::uint64_t launch_ns = 1000;  // between two kernels

void say(const std::string& text) {
  std::fprintf(stderr, "stand-in for libcuda: %s\n", text.c_str());
}

// What a real driver says of it.
CuResult code_of(emulate::FindingKind kind) {
  switch (kind) {
    case emulate::FindingKind::out_of_bounds:
      return error_illegal_address;
    case emulate::FindingKind::misaligned:
      return error_misaligned_address;
    case emulate::FindingKind::assertion:
      return error_assertion;
    case emulate::FindingKind::hang:
    case emulate::FindingKind::barrier_divergence:
      return error_timeout;
    default:
      return error_launch_failed;
  }
}

std::vector<emulate::HostRange> reachable_memory(const FakeGpu& gpu) {
  std::vector<emulate::HostRange> ranges;
  for (const auto& [address, bytes] : gpu.allocated) ranges.push_back({address, bytes});
  for (const DevicePointer page : gpu.accessible) {
    // Pages side by side are one range.
    if (ranges.size() > gpu.allocated.size() &&
        ranges.back().address + ranges.back().bytes == page) {
      ranges.back().bytes += fake_page;
    } else {
      ranges.push_back({page, fake_page});
    }
  }
  return ranges;
}

gpu::KernelLaunch kernel_launch(const FakeLaunch& launch) {
  gpu::KernelLaunch kernel;
  kernel.kernel = launch.function->name;
  kernel.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  kernel.block = {launch.block[0], launch.block[1], launch.block[2]};
  kernel.dynamic_shared_bytes = launch.shared;
  const auto* at = reinterpret_cast<const std::byte*>(launch.arguments.data());
  for (const std::size_t bytes : launch.function->argument_bytes) {
    kernel.arguments.emplace_back(gpu::ByteArgument{{at, at + bytes}});
    at += (bytes + 7) / 8 * 8;
  }
  return kernel;
}

}  // namespace

CuResult load_module(FakeModule& module) {
  if (module.loaded) return cuda::cu_success;
  auto parsed = ptx::parse_whole(module.text, "module");
  if (!parsed) {
    say(parsed.error().message);
    return error_invalid_ptx;
  }
  auto loaded = emulate::LoadedModule::load(std::move(*parsed), "module");
  if (!loaded) {
    say(loaded.error().message);
    return error_invalid_ptx;
  }
  module.loaded.emplace(std::move(*loaded));
  return cuda::cu_success;
}

CuResult load_function(FakeModule& module, FakeFunction& function) {
  if (const auto* known = probe_arguments(function.name)) {
    function.argument_bytes = *known;
    return cuda::cu_success;
  }
  if (const CuResult code = load_module(module); code != cuda::cu_success) return code;
  const ptx::Function* kernel = module.loaded->module().find_function(function.name);
  if (kernel == nullptr) return error_not_found;
  function.argument_bytes.clear();
  for (const ptx::Variable& parameter : kernel->parameters) {
    function.argument_bytes.push_back(parameter.byte_size());
  }
  return cuda::cu_success;
}

int attribute_of(const FakeFunction& function, int attribute) {
  if (probe_arguments(function.name) != nullptr) {
    return attribute == cuda::function_shared_bytes ? own_shared_bytes : 0;
  }
  const bool tells_none = std::getenv("DEMARC_FAKE_WITHOUT_STACKS") != nullptr;
  if (attribute == cuda::function_local_bytes && tells_none) return 0;
  const int spilled = attribute == cuda::function_local_bytes ? function.local_bytes : 0;
  if (!function.module->loaded) return spilled;
  const ptx::Function* kernel = function.module->loaded->module().find_function(function.name);
  if (kernel == nullptr) return spilled;
  const auto bytes_in = [&](ptx::StateSpace space) {
    std::uint64_t bytes = 0;
    for (const ptx::Variable& variable : kernel->body.variables) {
      if (variable.space == space) bytes += variable.byte_size();
    }
    return static_cast<int>(bytes);
  };
  if (attribute == cuda::function_shared_bytes) return bytes_in(ptx::StateSpace::shared);
  if (attribute == cuda::function_local_bytes) return bytes_in(ptx::StateSpace::local) + spilled;
  return 0;
}

void run_ptx(FakeGpu& gpu, const FakeLaunch& launch, const Placed& placed) {
  emulate::Card card;
  card.memory = reachable_memory(gpu);
  card.sm_of_block = placed.number;
  card.sms = gpu.sms();
  card.time_ns = gpu.now_ns;
  // An SM holds one block, as cuOccupancyMaxActiveBlocksPerMultiprocessor says.
  card.resident_blocks = static_cast<std::uint32_t>(
      std::set<std::uint32_t>(placed.sm.begin(), placed.sm.end()).size());
  emulate::Options options;
  options.check_uninitialised = false;
  options.check_races = false;
  options.threads = 1;
  const auto outcome = launch.function->module->loaded->run(kernel_launch(launch), card, options);
  if (!outcome) {
    say(outcome.error().message);
    gpu.broken = cuda::cu_error_not_supported;
    return;
  }
  gpu.now_ns += outcome->kernels.back().longest_warp + launch_ns;
  std::fputs(outcome->printed.c_str(), stdout);
  if (outcome->findings.empty()) return;
  say(emulate::describe(outcome->findings.front(), "module"));
  gpu.broken = code_of(outcome->findings.front().kind);
}

}  // namespace demarc::fake
