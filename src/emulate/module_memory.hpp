// What the variables of a module mean: where they lie, and what they hold at the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"
#include "machine.hpp"

namespace demarc::emulate {

// The same for all kernels of a launch.
struct ModuleMemory {
  std::map<const ptx::Variable*, std::uint64_t> global_address;
  std::map<const ptx::Variable*, std::uint64_t> constant_offset;
  std::map<const ptx::Variable*, std::byte*> global_content;  // in `storage`
  std::vector<std::vector<std::byte>> storage;                // of the global variables
  std::vector<Region> regions;
  std::vector<std::byte> constants;
  std::vector<const ptx::Function*> functions;  // whose addresses the variables hold
  std::unique_ptr<DeviceHeap> heap;  // made when a kernel first needs it, kept for the launch
};

// Addresses of global variables: those of global_variable_addresses(), or where they lie on the
// host.
enum class VariablePlaces : std::uint8_t { own, host };

// For a function of the module that has a body.
[[nodiscard]] std::uint64_t address_of_function(const ptx::Module& module,
                                                const ptx::Function& function);

// What a variable that was placed holds.
[[nodiscard]] std::span<std::byte> content_of(ModuleMemory& memory, const ptx::Variable& variable);

[[nodiscard]] Result<ModuleMemory> place_module_memory(const ptx::Module& module,
                                                       const std::string& source,
                                                       VariablePlaces places);

}  // namespace demarc::emulate
