// Makes a launch file of a launch that was taken out of a program.
#include "capture/captured_launch.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "capture/stored_number.hpp"
#include "demarc/base/files.hpp"
#include "demarc/launch/launch_write.hpp"

namespace demarc::cuda {
namespace {

using ptx::Type;

std::string_view text_of_bytes(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What the instruction takes that a launch file cannot be made of; empty: nothing.
std::string_view opaque_argument(const ptx::Instruction& instruction) {
  if (ptx::info(instruction.opcode).group == ptx::OpcodeGroup::texture) {
    return "a texture or a surface";
  }
  switch (instruction.opcode) {
    case ptx::Opcode::cp_async_bulk_tensor:
    case ptx::Opcode::cp_reduce_async_bulk_tensor:
    case ptx::Opcode::cp_async_bulk_prefetch_tensor:
    case ptx::Opcode::tensormap_replace:
      return "a tensor map";
    default:
      return {};
  }
}

Result<void> refuse_opaque_arguments_of(const ptx::Module& module, const ptx::Function& function) {
  for (const ptx::Instruction& instruction : function.body.instructions) {
    const std::string_view what = opaque_argument(instruction);
    if (what.empty()) continue;
    return missing_capability("{}:{}: {}: {} cannot be taken", module.source_name, instruction.line,
                              module.text_of(instruction), what);
  }
  return {};
}

// What two right ways to compute the same may differ by, relative. Of f16 it is one in the last
// place: 2^-10.
double rounding_of(gpu::ScalarType type) {
  constexpr double of_f16 = 1e-3;
  constexpr double of_f32 = 1e-5;
  constexpr double of_f64 = 1e-12;
  if (type == gpu::ScalarType::f16) return of_f16;
  return type == gpu::ScalarType::f32 ? of_f32 : of_f64;
}

// A number as its parameter says; bytes where that says nothing, or a launch file could not.
gpu::Argument captured_value(const ptx::Variable& parameter, const std::vector<std::byte>& bytes) {
  gpu::Scalar scalar;
  std::memcpy(&scalar.bits, bytes.data(), std::min(bytes.size(), sizeof scalar.bits));
  switch (parameter.is_array ? Type::none : parameter.type) {
    case Type::f32:
      scalar.type = gpu::ScalarType::f32;
      break;
    case Type::f64:
      scalar.type = gpu::ScalarType::f64;
      break;
    case Type::s32:
      scalar.type = gpu::ScalarType::i32;
      break;
    case Type::u32:
    case Type::b32:
      scalar.type = gpu::ScalarType::u32;
      break;
    case Type::s64:
    case Type::u64:
    case Type::b64:
      scalar.type = gpu::ScalarType::i64;
      break;
    default:
      return gpu::ByteArgument{bytes};
  }
  return scalar;
}

// That `address` lies in, or just behind: the end of a range is an address too.
const CapturedMemory* memory_at(const CapturedLaunch& captured, std::uint64_t address) {
  const CapturedMemory* ends = nullptr;
  for (const CapturedMemory& one : captured.memory) {
    if (address - one.address < one.before.size()) return &one;
    if (address == one.address + one.before.size()) ends = &one;
  }
  return ends;
}

// A parameter that is one address in the memory that was taken.
std::optional<gpu::BufferUse> captured_use(const CapturedLaunch& captured,
                                           const std::vector<std::byte>& bytes) {
  std::uint64_t word = 0;
  if (bytes.size() != sizeof word) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof word);
  const CapturedMemory* memory = memory_at(captured, word);
  if (memory == nullptr) return std::nullopt;
  return gpu::BufferUse{static_cast<std::size_t>(memory - captured.memory.data()),
                        word - memory->address};
}

// Whether anything but a parameter of its own holds an address: then memory has to lie where it
// lay.
bool holds_addresses(const CapturedLaunch& captured) {
  bool any = false;
  const auto look = [&](const std::vector<std::byte>& bytes) {
    for_each_word(bytes,
                  [&](std::uint64_t word) { any = any || memory_at(captured, word) != nullptr; });
  };
  for (const auto& argument : captured.arguments) {
    if (argument.size() != sizeof(std::uint64_t)) look(argument);
  }
  for (const CapturedMemory& memory : captured.memory) look(memory.before);
  for (const CapturedVariable& variable : captured.variables) look(variable.before);
  return any;
}

gpu::Fill fill_from(const std::string& file) {
  gpu::Fill fill;
  fill.kind = gpu::FillKind::file;
  fill.file = file;
  return fill;
}

}  // namespace

Result<void> refuse_opaque_arguments(const ptx::Module& module, const ptx::Function& kernel) {
  DEMARC_CHECK(refuse_opaque_arguments_of(module, kernel));
  const auto& instructions = kernel.body.instructions;
  const bool calls =
      std::any_of(instructions.begin(), instructions.end(), [](const ptx::Instruction& one) {
        return ptx::info(one.opcode).group == ptx::OpcodeGroup::call;
      });
  for (const ptx::Function& function : module.functions) {
    if (calls && !function.is_entry) DEMARC_CHECK(refuse_opaque_arguments_of(module, function));
  }
  return {};
}

Result<void> write_captured(const CapturedLaunch& captured, const std::filesystem::path& folder) {
  const ptx::Module& module = *captured.module;
  gpu::Launch launch;
  launch.name = captured.kernel;
  launch.ptx = (folder / "module.ptx").string();
  DEMARC_CHECK(write_file(launch.ptx, *module.text));
  const auto number = stored_number(module, captured.kernel);
  const bool fixed = holds_addresses(captured);
  for (std::size_t i = 0; i < captured.memory.size(); ++i) {
    const CapturedMemory& memory = captured.memory[i];
    gpu::Buffer buffer;
    buffer.name = fmt::format("memory{}", i);
    buffer.bytes = memory.before.size();
    buffer.element =
        buffer.bytes % sizeof(std::uint32_t) == 0 ? gpu::ScalarType::u32 : gpu::ScalarType::u8;
    buffer.host = memory.host;
    buffer.output = memory.after != memory.before;
    if (fixed) buffer.address = memory.address;
    buffer.fill = fill_from((folder / (buffer.name + ".bin")).string());
    DEMARC_CHECK(write_file(buffer.fill.file, text_of_bytes(memory.before)));
    if (buffer.output) {
      if (number && buffer.bytes % gpu::size_of(*number) == 0) {
        buffer.element = *number;
        launch.check.relative = rounding_of(*number);
      }
      const std::string after = (folder / (buffer.name + "-after.bin")).string();
      DEMARC_CHECK(write_file(after, text_of_bytes(memory.after)));
      launch.check.files.emplace(i, after);
    }
    launch.buffers.push_back(std::move(buffer));
  }
  for (const CapturedVariable& variable : captured.variables) {
    gpu::Buffer set;
    set.name = variable.name;
    set.element = gpu::ScalarType::u8;
    set.fill =
        fill_from((folder / fmt::format("variable{}.bin", launch.variables.size())).string());
    DEMARC_CHECK(write_file(set.fill.file, text_of_bytes(variable.before)));
    launch.variables.push_back(std::move(set));
  }
  gpu::KernelLaunch kernel;
  kernel.kernel = captured.kernel;
  kernel.grid = captured.grid;
  kernel.block = captured.block;
  kernel.cluster = captured.cluster;
  kernel.dynamic_shared_bytes = captured.shared_bytes;
  const auto& parameters = module.find_function(captured.kernel)->parameters;
  for (std::size_t i = 0; i < captured.arguments.size(); ++i) {
    const auto& bytes = captured.arguments[i];
    if (const auto use = captured_use(captured, bytes)) {
      kernel.arguments.emplace_back(*use);
    } else {
      kernel.arguments.push_back(captured_value(parameters[i], bytes));
    }
  }
  launch.kernels.push_back(std::move(kernel));
  DEMARC_CHECK(gpu::validate(launch));
  DEMARC_TRY(const std::string text, gpu::launch_to_json(launch));
  return write_file(folder / "launch.json", text);
}

}  // namespace demarc::cuda
