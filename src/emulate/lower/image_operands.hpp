// The operand that names an image and a place in it.
#pragma once

#include "lower/instructions.hpp"
#include "ops/image.hpp"

namespace demarc::emulate {

// The geometry that an instruction names; empty: one that is not covered, or a modifier that is
// not among `others`.
struct ImageGeometry {
  unsigned dimensions = 1;
  bool layered = false;
};
[[nodiscard]] std::optional<ImageGeometry> image_geometry(
    const InstructionView& instruction, std::initializer_list<std::string_view> others);

[[nodiscard]] LaneSlot lane_slot(const Source& source);

// [handle]: a register of 64 bits. False: not covered.
[[nodiscard]] bool place_handle(FunctionContext& f, const ptx::Operand& operand, MicroOp& handle);
// [handle, {coordinates}], of that type. False: not covered.
[[nodiscard]] bool place_image(FunctionContext& f, const InstructionView& instruction,
                               const ptx::Operand& operand, ptx::Type type,
                               const ImageGeometry& geometry, ImageOperands& made);
// Accesses of so many bytes to the image's buffer.
void place_part(FunctionContext& f, std::uint32_t bytes, AccessKind kind, ImageOperands& made);

}  // namespace demarc::emulate
