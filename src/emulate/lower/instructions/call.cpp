// Calls: of functions of the module, through a register, and of what the driver provides.
#include <fmt/format.h>

#include <algorithm>

#include "lower/instructions.hpp"
#include "lower/register_parameters.hpp"
#include "ops/control.hpp"
#include "ops/device_calls.hpp"

namespace demarc::emulate {

using ptx::Operand;
using ptx::OperandKind;

namespace {

// A result that is a register: it passes through the frame of the caller.
struct TakenResult {
  Slot slot;
  Register reg;
};

// call (results), callee, (arguments): both lists may be missing.
struct CallParts {
  const Operand* results = nullptr;
  const Operand* callee = nullptr;
  const Operand* arguments = nullptr;
};

CallParts parts_of_call(const InstructionView& instruction) {
  CallParts out;
  for (const Operand& operand : instruction.operands()) {
    const bool is_list = operand.kind == OperandKind::list;
    if (!is_list && out.callee == nullptr) {
      out.callee = &operand;
    } else if (is_list) {
      (out.callee == nullptr ? out.results : out.arguments) = &operand;
    }
  }
  return out;
}

// The place of a variable in .param space that is handed over as it is.
std::optional<FrameVariable> handed_variable(const FunctionContext& f, const Operand& operand) {
  if (operand.kind != OperandKind::symbol || operand.base != ptx::Base::variable)
    return std::nullopt;
  return f.frame.parameter_variable(f.function.body.variables[operand.index]);
}

// A place for a register or an immediate of a function with .reg parameters.
std::optional<Slot> passing_place(FunctionContext& f, const Operand& operand) {
  if (operand.kind != OperandKind::reg && operand.kind != OperandKind::immediate) {
    f.code.fail();
    return std::nullopt;
  }
  return f.frame.lanes(call_pitch);
}

std::vector<std::uint32_t> give_arguments(FunctionContext& f, const InstructionView& instruction,
                                          const Operand& list) {
  std::vector<std::uint32_t> offsets;
  for (const Operand& operand : instruction.children(list)) {
    if (const auto variable = handed_variable(f, operand)) {
      offsets.push_back(variable->offset);
      continue;
    }
    const auto slot = passing_place(f, operand);
    if (!slot) break;
    offsets.push_back(slot->offset);
    const Source value = f.operands.any_source(operand, ptx::Type::b64);
    copy_lanes(f.code, lanes_of(value), {.slot = *slot, .pitch = call_pitch}, value.width);
  }
  return offsets;
}

std::vector<std::uint32_t> place_results(FunctionContext& f, const InstructionView& instruction,
                                         const Operand& list, std::vector<TakenResult>& taken) {
  std::vector<std::uint32_t> offsets;
  for (const Operand& operand : instruction.children(list)) {
    if (const auto variable = handed_variable(f, operand)) {
      offsets.push_back(variable->offset);
      continue;
    }
    const auto slot = passing_place(f, operand);
    if (!slot) break;
    offsets.push_back(slot->offset);
    taken.push_back({.slot = *slot, .reg = f.operands.any_destination(operand)});
  }
  return offsets;
}

void call_through_register(FunctionContext& f, const Operand& callee, CallDetails& call) {
  const Source address = f.operands.source(callee, ptx::Type::u64);
  MicroOp& op = f.code.emit(control::call_indirect);
  op.a = address.slot.offset;
  op.uniform = uniform_bits(address);
  op.aux = &call;
  op.join = static_cast<std::uint32_t>(f.code.next());
  f.code.emit(control::join);
}

// Functions that the driver provides. Null: none of that name with so many arguments and results.
Handler device_function(std::string_view name, const CallDetails& call) {
  struct Row {
    std::string_view name;
    std::size_t arguments;
    std::size_t fewest_results;
    Handler handler;
  };
  static constexpr std::array<Row, 4> rows{{{"vprintf", 2, 0, device_calls::print},
                                            {"malloc", 1, 1, device_calls::allocate},
                                            {"free", 1, 0, device_calls::release},
                                            {"__assertfail", 5, 0, device_calls::assertion}}};
  for (const Row& row : rows) {
    if (row.name == name && row.arguments == call.arguments.size() &&
        row.fewest_results <= call.results.size()) {
      return row.handler;
    }
  }
  return nullptr;
}

void call_device_function(FunctionContext& f, const InstructionView& instruction,
                          std::string_view name, CallDetails& call) {
  const Handler handler = device_function(name, call);
  if (handler == nullptr) {
    f.kernel.refusals.add(instruction.written(),
                          fmt::format("function '{}' is declared but has no body", name));
    return;
  }
  if (handler == device_calls::allocate || handler == device_calls::release) {
    f.kernel.program.allocates = true;
    f.code.order_blocks();  // which block gets which address depends on the order
  }
  f.code.emit(handler).aux = &call;
}

void emit_call(FunctionContext& f, const InstructionView& instruction, const Operand& callee,
               CallDetails& call) {
  f.kernel.program.calls = true;
  if (callee.kind == OperandKind::reg) {
    call_through_register(f, callee, call);
    return;
  }
  if (callee.base != ptx::Base::function) {
    f.code.fail();
    return;
  }
  const ptx::Function* definition = definition_of(f.kernel.module(), callee.index);
  if (definition == nullptr) {
    call_device_function(f, instruction, f.kernel.module().functions[callee.index].name, call);
    return;
  }
  call.function = f.kernel.functions.index_of(*definition);
  f.code.emit(control::call).aux = &call;
}

}  // namespace

bool lower_call(FunctionContext& f, const InstructionView& instruction) {
  const CallParts parts = parts_of_call(instruction);
  if (parts.callee == nullptr) return false;
  auto& call = f.code.details<CallDetails>();
  std::vector<TakenResult> taken;
  if (parts.results != nullptr) call.results = place_results(f, instruction, *parts.results, taken);
  if (parts.arguments != nullptr) call.arguments = give_arguments(f, instruction, *parts.arguments);
  if (f.code.failed()) return false;
  emit_call(f, instruction, *parts.callee, call);
  for (const auto& [slot, reg] : taken) {
    if (reg.uniform) f.code.fail();
    copy_lanes(f.code, {.slot = slot, .pitch = call_pitch}, lanes_of(reg), reg.width);
  }
  return true;
}

}  // namespace demarc::emulate
