// Loads, stores and reductions of surfaces.
#include "ops/surface.hpp"

#include <algorithm>

#include "lower/image_operands.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

// The registers of a load are written; a narrow element leaves zeros above it.
bool place_values(FunctionContext& f, const InstructionView& instruction,
                  const ptx::Operand& operand, SurfaceDetails& made) {
  const Type type = instruction.type();
  const auto values = instruction.elements(operand);
  if (values.size() != made.count) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (made.mode != AccessMode::load) {
      made.values[i] = lane_slot(f.operands.any_source(values[i], type));
    } else if (values[i].kind == OperandKind::sink) {
      made.values[i].offset = SurfaceDetails::sink;
      continue;
    } else {
      const Register d = f.operands.any_destination(values[i]);
      if (d.uniform) return false;
      made.values[i] = lane_slot(value_of(d));
    }
    if (made.values[i].width < made.element_bytes) return false;
  }
  return true;
}

bool set_reduction(const InstructionView& instruction, SurfaceDetails& made) {
  const auto kind = atomic_kind(instruction);
  const auto type = atomic_type(instruction.type());
  if (!kind || !type || made.count != 1) return false;
  made.kind = *kind;
  made.type = *type;
  return true;
}

}  // namespace

// suld.b d, [handle, {coordinates}], sust.b [handle, {coordinates}], b and sured.b of the same form
bool lower_surface(FunctionContext& f, const InstructionView& instruction) {
  static constexpr Rows<Opcode, AccessMode, 3> modes{{{Opcode::suld, AccessMode::load},
                                                      {Opcode::sust, AccessMode::store},
                                                      {Opcode::sured, AccessMode::atomic}}};
  static constexpr Rows<std::string_view, SurfaceBoundary, 3> boundaries{
      {{"trap", SurfaceBoundary::trap},
       {"clamp", SurfaceBoundary::clamp},
       {"zero", SurfaceBoundary::zero}}};
  const auto mode = look_up(modes, instruction.opcode());
  if (!mode) return false;
  const auto geometry =
      image_geometry(instruction, {"b", "trap", "clamp", "zero", "ca", "cg", "cs", "cv", "wb", "wt",
                                   "add", "min", "max", "and", "or"});
  const auto boundary = instruction.chosen(boundaries);
  if (!geometry || !boundary || !instruction.has("b") || instruction.operands().size() != 2)
    return false;
  auto& made = f.code.details<SurfaceDetails>();
  made.mode = *mode;
  made.boundary = *boundary;
  made.element_bytes = ptx::byte_size(instruction.type());
  made.count = instruction.words().vector_width;
  const std::uint32_t bytes = made.element_bytes * made.count;
  if (made.count > std::size(made.values) || bytes == 0 || bytes > 16) return false;
  if (*mode == AccessMode::atomic) {
    if (!set_reduction(instruction, made)) return false;
    f.code.order_blocks();
  }
  const bool loads = *mode == AccessMode::load;
  if (!place_values(f, instruction, instruction[loads ? 0 : 1], made) ||
      !place_image(f, instruction, instruction[loads ? 1 : 0], Type::s32, *geometry, made.operands))
    return false;
  const AccessKind kind = loads                         ? AccessKind::load
                          : *mode == AccessMode::atomic ? AccessKind::atomic
                                                        : AccessKind::store;
  place_part(f, bytes, kind, made.operands);
  f.code.emit(surface_ops::access).aux = &made;
  return true;
}

}  // namespace demarc::emulate
