// Keeps a module loaded while its kernels run in the caller's memory.
#include <algorithm>

#include "demarc/ptx/ir.hpp"
#include "lower/vector_registers.hpp"
#include "run.hpp"

namespace demarc::emulate {

struct LoadedModule::State {
  ptx::Module module;
  std::string source;
  ModuleMemory memory;
};

namespace {

// Regions at their own addresses.
Result<std::vector<Region>> host_regions(const std::vector<HostRange>& memory) {
  std::vector<Region> regions;
  for (const HostRange& range : memory) {
    Region region;
    region.low = range.address;
    region.high = range.address + range.bytes;
    if (region.high < region.low) {
      return invalid_input("{} bytes at 0x{:x} go beyond the last address", range.bytes,
                           range.address);
    }
    if (region.low < param_window + window_bytes && region.high > shared_window) {
      return invalid_input(
          "{} bytes at 0x{:x}: generic addresses lead to other memory between 0x{:x} and 0x{:x}",
          range.bytes, range.address, shared_window, param_window + window_bytes);
    }
    if (range.bytes != 0) regions.push_back(region);
  }
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) { return a.low < b.low; });
  for (std::size_t i = 1; i < regions.size(); ++i) {
    if (regions[i].low < regions[i - 1].high) {
      return invalid_input("the ranges at 0x{:x} and at 0x{:x} overlap", regions[i - 1].low,
                           regions[i].low);
    }
  }
  return regions;
}

}  // namespace

LoadedModule::LoadedModule(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoadedModule::LoadedModule(LoadedModule&& other) noexcept = default;
LoadedModule& LoadedModule::operator=(LoadedModule&& other) noexcept = default;
LoadedModule::~LoadedModule() = default;

Result<LoadedModule> LoadedModule::load(ptx::Module module, std::string source) {
  auto state = std::make_unique<State>();
  state->module = std::move(module);
  if (auto scalar = without_vector_registers(state->module)) state->module = std::move(*scalar);
  state->source = std::move(source);
  DEMARC_TRY(state->memory,
             place_module_memory(state->module, state->source, VariablePlaces::host));
  return LoadedModule(std::move(state));
}

const ptx::Module& LoadedModule::module() const {
  return state_->module;
}

std::optional<HostRange> LoadedModule::variable(std::string_view name) const {
  for (const auto& [variable, address] : state_->memory.global_address) {
    if (variable->name == name) return HostRange{address, variable->byte_size()};
  }
  for (const auto& [variable, offset] : state_->memory.constant_offset) {
    if (variable->name != name) continue;
    return HostRange{reinterpret_cast<std::uint64_t>(state_->memory.constants.data() + offset),
                     variable->byte_size()};
  }
  return std::nullopt;
}

Result<Outcome> LoadedModule::run(const gpu::KernelLaunch& kernel, const Card& card,
                                  const Options& options) {
  gpu::Launch launch;
  launch.kernels.push_back(kernel);
  DEMARC_CHECK(gpu::validate(launch));
  DEMARC_TRY(const std::vector<Region> regions, host_regions(card.memory));
  Options own = options;
  own.source = state_->source;
  Outcome outcome;
  DEMARC_TRY(outcome.instruction_set, chosen_instruction_set(own));
  DEMARC_TRY([[maybe_unused]] const bool ended, run_kernel({.module = state_->module,
                                                            .launch = launch,
                                                            .memory = state_->memory,
                                                            .buffers = regions,
                                                            .card = card,
                                                            .options = own},
                                                           kernel, outcome));
  return outcome;
}

}  // namespace demarc::emulate
