// Places the variables of a module, and fills them.
#include "module_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "demarc/base/rounding.hpp"
#include "demarc/emulate/placement.hpp"
#include "demarc/ptx/initialiser.hpp"

namespace demarc::emulate {

namespace {

constexpr std::uint64_t variable_alignment = 256;
constexpr std::uint64_t function_pitch = 16;  // between the addresses of two functions

// The variables of global and constant memory, those that functions declare in their bodies too.
std::vector<const ptx::Variable*> placed_variables(const ptx::Module& module) {
  std::vector<const ptx::Variable*> out;
  const auto add = [&](const std::vector<ptx::Variable>& variables) {
    for (const ptx::Variable& variable : variables) {
      const bool is_placed =
          variable.space == ptx::StateSpace::global || variable.space == ptx::StateSpace::constant;
      if (is_placed && !variable.is_repeated) out.push_back(&variable);
    }
  };
  add(module.variables);
  for (const ptx::Function& function : module.functions) add(function.body.variables);
  return out;
}

// Before anything is taken: what a module declares may be more than this machine has.
Result<void> check_sizes(const ptx::Module& module, const std::string& source) {
  const auto machine = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t bytes = 0;
  for (const ptx::Variable* const variable : placed_variables(module)) {
    bytes += variable->byte_size();
    if (bytes > machine) {
      return missing_capability(
          "{}:{}: with '{}' the module's variables take {} bytes; this machine has {} bytes of "
          "memory",
          source, variable->line, variable->name, bytes, machine);
    }
  }
  return {};
}

std::uint64_t behind_variable(std::uint64_t address, const ptx::Variable& variable) {
  return round_up(address + std::max<std::uint64_t>(variable.byte_size(), 1) + variable_alignment,
                  variable_alignment);
}

const ptx::Function* callable(const ptx::Module& module, std::string_view name) {
  for (const ptx::Function& function : module.functions) {
    if (function.name == name && function.has_body && !function.is_entry) return &function;
  }
  return nullptr;
}

}  // namespace

std::vector<std::uint64_t> global_variable_addresses(const ptx::Module& module) {
  std::vector<std::uint64_t> addresses;
  std::uint64_t next = global_variables_base;
  for (const ptx::Variable& variable : module.variables) {
    const bool global = variable.space == ptx::StateSpace::global && !variable.is_repeated;
    addresses.push_back(global ? next : 0);
    if (global) next = behind_variable(next, variable);
  }
  return addresses;
}

std::uint64_t address_of_function(const ptx::Module& module, const ptx::Function& function) {
  return function_base +
         function_pitch * static_cast<std::uint64_t>(&function - module.functions.data());
}

std::span<std::byte> content_of(ModuleMemory& memory, const ptx::Variable& variable) {
  if (const auto global = memory.global_content.find(&variable);
      global != memory.global_content.end())
    return {global->second, variable.byte_size()};
  return std::span(memory.constants)
      .subspan(memory.constant_offset.at(&variable), variable.byte_size());
}

Result<ModuleMemory> place_module_memory(const ptx::Module& module, const std::string& source,
                                         VariablePlaces places) {
  DEMARC_CHECK(check_sizes(module, source));
  ModuleMemory memory;
  std::uint64_t next = global_variables_base;
  std::uint64_t constant_bytes = 0;
  const std::vector<const ptx::Variable*> placed = placed_variables(module);
  for (const ptx::Variable* const declared : placed) {
    const ptx::Variable& variable = *declared;
    if (variable.space == ptx::StateSpace::global) {
      const std::uint64_t bytes = std::max<std::uint64_t>(variable.byte_size(), 1);
      memory.storage.emplace_back(bytes + variable_alignment);
      const std::uint64_t host = round_up(
          reinterpret_cast<std::uint64_t>(memory.storage.back().data()), variable_alignment);
      Region region;
      region.low = places == VariablePlaces::own ? next : host;
      next = behind_variable(next, variable);
      region.high = region.low + bytes;
      region.delta = host - region.low;
      memory.global_address[&variable] = region.low;
      memory.regions.push_back(region);
      memory.global_content[&variable] = reinterpret_cast<std::byte*>(host);
    } else {
      constant_bytes = round_up(constant_bytes, std::max(variable.alignment(), 1U));
      memory.constant_offset[&variable] = constant_bytes;
      constant_bytes += variable.byte_size();
    }
  }
  memory.constants.resize(constant_bytes);
  const auto address_of = [&](std::string_view name, bool generic, std::uint64_t& out) {
    for (const ptx::Variable& variable : module.variables) {
      if (variable.name != name) continue;
      if (const auto at = memory.global_address.find(&variable);
          at != memory.global_address.end()) {
        out = at->second;
        return true;
      }
      if (const auto at = memory.constant_offset.find(&variable);
          at != memory.constant_offset.end()) {
        out = at->second + (generic ? constant_window : 0);
        return true;
      }
    }
    const ptx::Function* const function = callable(module, name);
    if (function == nullptr) return false;
    out = address_of_function(module, *function);
    memory.functions.push_back(function);
    return true;
  };
  for (const ptx::Variable* const entry : placed) {
    const ptx::Variable& variable = *entry;
    if (variable.initialiser.empty()) continue;
    DEMARC_TRY(const ptx::InitialImage image, ptx::initial_image(module, variable));
    std::byte* const to = content_of(memory, variable).data();
    std::memcpy(to, image.bytes.data(),
                std::min<std::size_t>(image.bytes.size(), variable.byte_size()));
    for (const ptx::Relocation& relocation : image.relocations) {
      std::uint64_t value = 0;
      if (!address_of(relocation.symbol, relocation.is_generic, value)) {
        return invalid_input(
            "{}:{}: the initialiser of '{}' names '{}', whose address is not known before the "
            "launch",
            source, variable.line, variable.name, relocation.symbol);
      }
      value = (value + static_cast<std::uint64_t>(relocation.addend)) >> relocation.shift;
      std::memcpy(to + relocation.offset, &value, std::min<std::size_t>(relocation.bytes, 8));
    }
  }
  return memory;
}

}  // namespace demarc::emulate
