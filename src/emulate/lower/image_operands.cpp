// Lowers handles of images, and coordinates.
#include "lower/image_operands.hpp"

#include <algorithm>

#include "lower/bulk_parts.hpp"

namespace demarc::emulate {

using ptx::OperandKind;
using ptx::StateSpace;
using ptx::Type;

namespace {

// Types and the number of values, which are looked at where values are.
bool names_value(ptx::Modifier modifier) {
  if (modifier == ptx::Modifier::unknown) return false;
  const ptx::ModifierClass of = info(modifier).modifier_class;
  return of == ptx::ModifierClass::type || of == ptx::ModifierClass::vector;
}

}  // namespace

std::optional<ImageGeometry> image_geometry(const InstructionView& instruction,
                                            std::initializer_list<std::string_view> others) {
  static constexpr Rows<std::string_view, ImageGeometry, 5> geometries{{{"1d", {1, false}},
                                                                        {"2d", {2, false}},
                                                                        {"3d", {3, false}},
                                                                        {"a1d", {1, true}},
                                                                        {"a2d", {2, true}}}};
  std::optional<ImageGeometry> found;
  for (const ptx::ModifierUse& use : instruction.words().modifiers) {
    const auto geometry = look_up(geometries, std::string_view(use.text));
    if (geometry) {
      found = geometry;
    } else if (!names_value(use.id) &&
               std::find(others.begin(), others.end(), use.text) == others.end()) {
      return std::nullopt;
    }
  }
  return found;
}

LaneSlot lane_slot(const Source& source) {
  return {.offset = source.slot.offset, .width = source.width, .uniform = source.uniform};
}

bool place_handle(FunctionContext& f, const ptx::Operand& operand, MicroOp& handle) {
  if (operand.kind != OperandKind::address || operand.base != ptx::Base::reg ||
      operand.value != 0 || f.frame.reg(operand.index).width != sizeof(std::uint64_t))
    return false;
  const auto place = f.operands.address(operand, StateSpace::global);
  if (!place) return false;
  handle = *place;
  return true;
}

bool place_image(FunctionContext& f, const InstructionView& instruction,
                 const ptx::Operand& operand, Type type, const ImageGeometry& geometry,
                 ImageOperands& made) {
  if (operand.kind != OperandKind::tuple) return false;
  const auto parts = instruction.children(operand);
  if (parts.size() != 2 || !place_handle(f, parts[0], made.handle)) return false;
  made.dimensions = geometry.dimensions;
  made.layered = geometry.layered;
  const auto written = instruction.elements(parts[1]);
  // Three are written as four.
  const std::size_t first = geometry.layered ? 1 : 0;
  const std::size_t wanted = first + geometry.dimensions;
  if (written.size() != (wanted == 3 ? 4 : wanted)) return false;
  if (geometry.layered) made.layer = lane_slot(f.operands.source(written[0], Type::u32));
  for (std::size_t i = 0; i < geometry.dimensions; ++i)
    made.coordinates[i] = lane_slot(f.operands.source(written[first + i], type));
  return true;
}

void place_part(FunctionContext& f, std::uint32_t bytes, AccessKind kind, ImageOperands& made) {
  made.scratch = f.frame.lanes(sizeof(std::uint64_t)).offset;
  made.part = part_of_copy(f.code, f.operands.at_slot(made.scratch, StateSpace::global),
                           static_cast<std::uint8_t>(bytes));
  f.code.note({.kind = kind, .bytes = bytes, .place = AddressKind::global});
}

}  // namespace demarc::emulate
