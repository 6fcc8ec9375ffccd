// Copies values into the frame and out of it.
#include "lower/register_parameters.hpp"

#include "ops/memory.hpp"

namespace demarc::emulate {

namespace {

// The register that a .reg parameter or result is; null for one in .param space.
const Register* register_of(const FunctionContext& f, const ptx::Variable& variable) {
  if (variable.space != ptx::StateSpace::reg) return nullptr;
  for (const ptx::RegisterRange& range : f.function.body.registers) {
    if (range.name == variable.name && !range.is_range) return &f.frame.reg(range.first);
  }
  return nullptr;
}

// There is no instruction that could fail for it.
void refuse_what_cannot_be_copied(FunctionContext& f, const std::vector<ptx::Variable>& variables) {
  for (const ptx::Variable& variable : variables) {
    const Register* reg = register_of(f, variable);
    if (reg == nullptr || can_copy_lanes(reg->width)) continue;
    f.kernel.refusals.add(f.function,
                          "a .reg parameter or result that is a predicate or has 16 bytes");
  }
}

LanePlace place_of(const FrameVariable& variable) {
  return {.slot = {variable.offset}, .pitch = variable.bytes};
}

}  // namespace

LanePlace lanes_of(const Source& source) {
  return {.slot = source.slot, .pitch = source.width, .uniform = source.uniform};
}

LanePlace lanes_of(const Register& reg) {
  return lanes_of(value_of(reg));
}

bool can_copy_lanes(std::uint8_t width) {
  return width != 0 && width <= sizeof(std::uint64_t);
}

void copy_lanes(Emitter& code, const LanePlace& from, const LanePlace& to, std::uint8_t width) {
  MicroOp& op = code.emit(memory_ops::copy_lanes);
  op.a = from.slot.offset;
  op.c = from.pitch;
  op.uniform = from.uniform ? uniform_a : std::uint8_t{0};
  op.d = to.slot.offset;
  op.b = to.pitch;
  op.bytes = width;
  if (!can_copy_lanes(width)) code.fail();
}

namespace {

// Between the frame and local memory, if the function takes the address of the variable.
void copy_local(FunctionContext& f, const ptx::Variable& variable, const FrameVariable& place,
                Handler handler) {
  const auto start = f.frame.local_offset(variable);
  if (!start) return;
  MicroOp& op = f.code.emit(handler);
  op.a = place.offset;
  op.b = static_cast<std::uint32_t>(variable.byte_size());
  op.c = place.bytes;
  op.imm = *start;
}

}  // namespace

void take_parameters(FunctionContext& f) {
  refuse_what_cannot_be_copied(f, f.function.parameters);
  refuse_what_cannot_be_copied(f, f.function.results);
  const CodeFunction& code = f.kernel.program.functions[f.index];
  for (std::size_t i = 0; i < f.function.parameters.size(); ++i) {
    const ptx::Variable& parameter = f.function.parameters[i];
    copy_local(f, parameter, code.parameters[i], memory_ops::frame_to_local);
    const Register* reg = register_of(f, parameter);
    if (reg == nullptr) continue;
    copy_lanes(f.code, place_of(code.parameters[i]), lanes_of(*reg), reg->width);
  }
}

void give_results(FunctionContext& f) {
  const CodeFunction& code = f.kernel.program.functions[f.index];
  for (std::size_t i = 0; i < f.function.results.size(); ++i) {
    const ptx::Variable& result = f.function.results[i];
    copy_local(f, result, code.results[i], memory_ops::local_to_frame);
    const Register* reg = register_of(f, result);
    if (reg == nullptr) continue;
    copy_lanes(f.code, lanes_of(*reg), place_of(code.results[i]), reg->width);
  }
}

}  // namespace demarc::emulate
