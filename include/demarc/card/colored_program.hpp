// A module on the GPU. Everything of it lies in a share of a coloured pool: what its kernels
// access, its variables, the local variables of its threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/card/colored_memory.hpp"
#include "demarc/driver/launch.hpp"
#include "demarc/guest/colored_code.hpp"

namespace demarc::cuda {

// A kernel that will be launched.
struct KernelUse {
  std::string kernel;
  std::uint64_t threads = 0;        // the most of a launch
  std::uint32_t block_threads = 1;  // the most of a block
};

class ColoredProgram {
 public:
  // Only the kernels of `uses` are loaded from the module. Their launches must follow each other,
  // because they share the memory of their local variables. invalid_input names kernels that cannot
  // be coloured, with lines and reasons. missing_capability if the share has no room, or if ptxas
  // keeps values of a kernel in local memory of its own (spills, the stack of calls), however many
  // registers the kernel may use. No colour contains that memory.
  static Result<ColoredProgram> load(const std::shared_ptr<ColoredPool>& pool, std::size_t share,
                                     const ptx::Module& module, std::span<const KernelUse> uses);

  [[nodiscard]] const Module& module() const { return module_; }

  // A variable of the module, as cuModuleGetGlobal names it. The content is reached by variables().
  struct Variable {
    std::uint64_t address = 0;  // what a kernel gets
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  // in variables()
  };
  [[nodiscard]] std::optional<Variable> variable(const std::string& name) const;
  // The block of all variables; null where there are none.
  [[nodiscard]] const ColoredBuffer* variables() const { return variables_.get(); }

 private:
  explicit ColoredProgram(Module module) : module_(std::move(module)) {}
  Module module_;
  std::unique_ptr<ColoredBuffer> variables_;
  std::unique_ptr<ColoredBuffer> local_;
  std::map<std::string, Variable> by_name_;
};

}  // namespace demarc::cuda
