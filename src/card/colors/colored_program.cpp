// Places a module's variables and local memory in a share of a pool, rewrites it and loads it.
#include "demarc/card/colored_program.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/card/code_of_pool.hpp"

#include <algorithm>

#include "demarc/ptx/registers.hpp"

namespace demarc::cuda {
namespace {

// Coloured memory whose linear address is a multiple of an alignment.
struct Placed {
  std::unique_ptr<ColoredBuffer> buffer;
  std::uint64_t skipped = 0;  // bytes in front of it
  std::uint64_t address = 0;
};

Result<Placed> place(ColoredPool& pool, std::size_t share, const ColoredCode& code,
                     std::uint64_t bytes, std::uint64_t alignment, std::string_view what) {
  auto buffer = pool.allocate(share, bytes + alignment);
  if (!buffer) {
    return missing_capability("there is no room for {} bytes of {}: {}", bytes, what,
                              buffer.error().message);
  }
  Placed placed;
  placed.buffer = std::make_unique<ColoredBuffer>(std::move(*buffer));
  const std::uint64_t first = code.pointer(placed.buffer->first()).raw();
  placed.address = round_up(first, alignment);
  placed.skipped = placed.address - first;
  return placed;
}

Result<void> fill(const Placed& placed, const ptx::ColoredBlock& block) {
  auto content = block.content(placed.address);
  content.resize(block.bytes);  // what is named without a value is zero
  return placed.buffer->upload(content.data(), content.size(), placed.skipped);
}

// The first kernel of which ptxas keeps something in local memory, else null; and how many bytes.
Result<std::pair<const KernelUse*, int>> spilling(const Module& module,
                                                  std::span<const KernelUse> uses) {
  for (const KernelUse& use : uses) {
    DEMARC_TRY(const Function function, module.function(use.kernel));
    DEMARC_TRY(const int bytes, function.attribute(function_local_bytes));
    if (bytes != 0) return std::pair(&use, bytes);
  }
  return std::pair<const KernelUse*, int>(nullptr, 0);
}

// Loads a module none of whose kernels keeps anything in local memory.
Result<Module> load_contained(const GpuPointer& gpu, ptx::Module code,
                              std::span<const KernelUse> uses) {
  DEMARC_TRY(Module module, Module::load(gpu, *code.text, code.source_name));
  // Once more for each kernel that spills.
  for (std::size_t attempt = 0;; ++attempt) {
    DEMARC_TRY(const auto found, spilling(module, uses));
    if (found.first == nullptr) return module;
    if (attempt == uses.size()) {
      return missing_capability(
          "{}: kernel '{}' is not contained: ptxas keeps {} bytes per thread in local memory, "
          "which has no colour, with all the registers that its launches leave it",
          code.source_name, found.first->kernel, found.second);
    }
    DEMARC_TRY(code, ptx::with_most_registers(std::move(code), found.first->kernel,
                                              found.first->block_threads));
    DEMARC_TRY(module, Module::load(gpu, *code.text, code.source_name));
  }
}

}  // namespace

Result<ColoredProgram> ColoredProgram::load(const std::shared_ptr<ColoredPool>& pool,
                                            std::size_t share, const ptx::Module& module,
                                            std::span<const KernelUse> uses) {
  DEMARC_TRY(const ColoredCode code, code_of_pool(*pool, share));
  ptx::ColoredOptions options;
  for (const KernelUse& use : uses) options.kernels.push_back(use.kernel);
  DEMARC_TRY(const auto needs, ptx::find_colored_needs(module, options));

  ptx::ColoredPlaces places;
  Placed variables;
  if (needs.variables.bytes != 0) {
    DEMARC_TRY(variables, place(*pool, share, code, needs.variables.bytes,
                                needs.variables.alignment, "variables of the module"));
    DEMARC_CHECK(fill(variables, needs.variables));
    places.variables = variables.address;
  }
  Placed local;
  if (needs.local_bytes != 0) {
    for (const KernelUse& use : uses) {
      places.local_threads = std::max(places.local_threads, use.threads);
    }
    DEMARC_TRY(local, place(*pool, share, code, needs.local_bytes * places.local_threads,
                            needs.local_alignment, "local variables"));
    places.local = local.address;
  }
  options.places = places;
  DEMARC_TRY(auto rewritten, code.rewrite(module, options));
  DEMARC_CHECK(ptx::check_accepted(rewritten.kernels, module.source_name));
  DEMARC_TRY(Module loaded, load_contained(pool->arena().gpu(), std::move(rewritten.module), uses));

  ColoredProgram program(std::move(loaded));
  for (const auto& variable : needs.variables.variables) {
    program.by_name_[variable.name] = {variables.address + variable.offset, variable.bytes,
                                       variables.skipped + variable.offset};
  }
  program.variables_ = std::move(variables.buffer);
  program.local_ = std::move(local.buffer);
  return program;
}

std::optional<ColoredProgram::Variable> ColoredProgram::variable(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

}  // namespace demarc::cuda
