// From the IR of a kernel and everything it calls to a Program: register slots resolved, immediates
// in uniform slots, branches with their reconvergence points.
//
// One class holds each thing that lowering keeps, and one function covers each kind of instruction:
//
//   of the kernel     Refusals, SharedVariables, FunctionList     (kernel.hpp)
//   of a function     Frame, Emitter, Operands, Branches          (function.hpp)
//   of an instruction InstructionView, and a row of instructions.cpp that lowers it
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"
#include "machine.hpp"
#include "module_memory.hpp"

namespace demarc::emulate {

struct LowerRequest {
  const ptx::Module* module = nullptr;
  const ptx::Function* kernel = nullptr;
  const ModuleMemory* memory = nullptr;
  std::vector<std::byte> parameters;  // as in memory, in declaration order with their alignment
  std::vector<std::uint32_t> parameter_offsets;
  std::vector<PlacedImage> images;             // images of the launch
  std::array<std::uint32_t, 3> grid{1, 1, 1};  // as the launch has it: of blocks or of clusters
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::optional<std::array<std::uint32_t, 3>> cluster;  // as the launch has it
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t sms = 1;  // %nsmid
  std::string source;     // for messages
  HandlerTables tables;
};

// An error lists the instructions and declarations that the emulator does not cover.
[[nodiscard]] Result<std::unique_ptr<Program>> lower(const LowerRequest& request);

}  // namespace demarc::emulate
