// Calls: of functions of the module, through a register, and of what the driver provides.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "demarc/base/rounding.hpp"
#include "demarc/ptx/parser.hpp"
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

// call (results), callee, (arguments), targets: both lists may be missing; `targets` stands behind
// a callee in a register.
struct CallParts {
  const Operand* results = nullptr;
  const Operand* callee = nullptr;
  const Operand* arguments = nullptr;
  const Operand* targets = nullptr;
};

CallParts parts_of_call(const InstructionView& instruction) {
  CallParts out;
  for (const Operand& operand : instruction.operands()) {
    const bool is_list = operand.kind == OperandKind::list;
    if (!is_list && out.callee == nullptr) {
      out.callee = &operand;
    } else if (is_list) {
      (out.callee == nullptr ? out.results : out.arguments) = &operand;
    } else if (operand.base == ptx::Base::targets) {
      out.targets = &operand;
    }
  }
  return out;
}

struct DeclaredPlaces {
  std::vector<FrameVariable> parameters;
  std::vector<FrameVariable> results;
};

DeclaredPlaces declared_by(const std::vector<ptx::Variable>& parameters,
                           const std::vector<ptx::Variable>& results) {
  const auto places = [](const std::vector<ptx::Variable>& variables) {
    std::vector<FrameVariable> out;
    for (const ptx::Variable& variable : variables) {
      const auto bytes = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(variable.byte_size(), max_parameter_bytes));
      out.push_back({0, round_up(bytes, call_pitch), bytes, variable.alignment()});
    }
    return out;
  };
  return {places(parameters), places(results)};
}

// All that is said of the callee: its own header, a prototype, or each function it may be.
std::vector<DeclaredPlaces> declarations_of(FunctionContext& f, const CallParts& parts) {
  std::vector<DeclaredPlaces> out;
  const auto add = [&](std::uint32_t index) {
    const ptx::Function& function = f.kernel.module().functions[index];
    out.push_back(declared_by(function.parameters, function.results));
  };
  if (parts.callee->base == ptx::Base::function) add(parts.callee->index);
  if (parts.targets == nullptr) return out;
  const ptx::TargetSet& targets = f.function.body.targets[parts.targets->index];
  if (targets.kind == ptx::TargetSet::Kind::call_prototype) {
    // A prototype is a declaration without the name.
    const std::string_view prototype = targets.text.substr(std::strlen(".callprototype"));
    const ptx::ParseResult read = ptx::parse(
        fmt::format(".version 9.0\n.target sm_90\n.address_size 64\n.func{}", prototype), "");
    if (read.module.functions.size() == 1) {
      const ptx::Function& function = read.module.functions[0];
      out.push_back(declared_by(function.parameters, function.results));
    } else {
      f.code.fail();
    }
  }
  for (const std::uint32_t target : targets.targets) {
    if (targets.kind == ptx::TargetSet::Kind::call_targets && target != ptx::no_index) add(target);
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

// What a call hands over: places in the frame of the caller.
struct HandedPlaces {
  std::vector<FrameVariable> arguments;
  std::vector<FrameVariable> results;
  std::vector<TakenResult> taken;
};

void give_arguments(FunctionContext& f, std::span<const Operand> list, HandedPlaces& out) {
  for (const Operand& operand : list) {
    if (const auto variable = handed_variable(f, operand)) {
      out.arguments.push_back(*variable);
      continue;
    }
    const auto slot = passing_place(f, operand);
    if (!slot) return;
    const Source value = f.operands.any_source(operand, ptx::Type::b64);
    const std::uint32_t size = operand.kind == OperandKind::reg ? value.width : 0;
    out.arguments.push_back({slot->offset, call_pitch, size, size});
    copy_lanes(f.code, lanes_of(value), {.slot = *slot, .pitch = call_pitch}, value.width);
  }
}

// A result that is thrown away needs a place as large as it is declared.
void place_results(FunctionContext& f, std::span<const Operand> list,
                   const std::vector<DeclaredPlaces>& declarations, HandedPlaces& out) {
  for (const Operand& operand : list) {
    const std::size_t at = out.results.size();
    if (operand.kind == OperandKind::sink && !declarations.empty() &&
        at < declarations[0].results.size()) {
      const std::uint32_t bytes = declarations[0].results[at].bytes;
      out.results.push_back({f.frame.lanes(bytes).offset, bytes});
      continue;
    }
    if (const auto variable = handed_variable(f, operand)) {
      out.results.push_back(*variable);
      continue;
    }
    const auto slot = passing_place(f, operand);
    if (!slot) return;
    const Register reg = f.operands.any_destination(operand);
    out.results.push_back({slot->offset, call_pitch, reg.width, reg.width});
    out.taken.push_back({.slot = *slot, .reg = reg});
  }
}

// The callee may be any function whose address the kernel takes, or finds in a variable.
void call_through_register(FunctionContext& f, const Operand& callee, CallDetails& call) {
  for (const ptx::Function* function : f.kernel.request.memory->functions) {
    const std::uint64_t start = address_of_function(f.kernel.module(), *function);
    f.kernel.program.function_of_address[start] = f.kernel.functions.index_of(*function);
  }
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
  static constexpr std::array<Row, 4> rows{
      {{.name = "vprintf", .arguments = 2, .fewest_results = 0, .handler = device_calls::print},
       {.name = "malloc", .arguments = 1, .fewest_results = 1, .handler = device_calls::allocate},
       {.name = "free", .arguments = 1, .fewest_results = 0, .handler = device_calls::release},
       {.name = "__assertfail",
        .arguments = 5,
        .fewest_results = 0,
        .handler = device_calls::assertion}}};
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

void call_function(FunctionContext& f, const ptx::Function& callee, CallDetails& call) {
  call.function = f.kernel.functions.index_of(callee);
  f.code.emit(control::call).aux = &call;
}

void emit_call(FunctionContext& f, const InstructionView& instruction, const Operand& callee,
               const HandedPlaces& handed) {
  auto& call = f.code.details<CallDetails>();
  call.arguments = handed.arguments;
  call.results = handed.results;
  f.kernel.program.calls = true;
  if (callee.kind == OperandKind::reg) {
    call_through_register(f, callee, call);
  } else if (callee.base != ptx::Base::function) {
    f.code.fail();
  } else if (const auto* definition = definition_of(f.kernel.module(), callee.index)) {
    call_function(f, *definition, call);
  } else {
    call_device_function(f, instruction, f.kernel.module().functions[callee.index].name, call);
  }
}

}  // namespace

bool lower_call(FunctionContext& f, const InstructionView& instruction) {
  const CallParts parts = parts_of_call(instruction);
  if (parts.callee == nullptr) return false;
  const std::vector<DeclaredPlaces> declarations = declarations_of(f, parts);
  HandedPlaces handed;
  if (parts.results != nullptr)
    place_results(f, instruction.children(*parts.results), declarations, handed);
  if (parts.arguments != nullptr) give_arguments(f, instruction.children(*parts.arguments), handed);
  if (f.code.failed()) return false;
  for (const DeclaredPlaces& declared : declarations) {
    if (control::fit(handed.arguments, declared.parameters) &&
        control::fit(handed.results, declared.results))
      continue;
    f.kernel.refusals.add(instruction.written(),
                          "values of another number, size or alignment than the called function "
                          "declares");
    return true;
  }
  emit_call(f, instruction, *parts.callee, handed);
  for (const auto& [slot, reg] : handed.taken) {
    if (reg.uniform) f.code.fail();
    copy_lanes(f.code, {.slot = slot, .pitch = call_pitch}, lanes_of(reg), reg.width);
  }
  return true;
}

}  // namespace demarc::emulate
