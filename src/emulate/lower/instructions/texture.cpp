// Fetches from textures, and questions for the sizes of textures and surfaces.
#include "ops/texture.hpp"

#include <algorithm>

#include "lower/image_operands.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

// What all texels of the launch's textures consist of: the trace has accesses of one size.
std::uint32_t texel_part(const FunctionContext& f) {
  std::uint32_t least = max_texel_bytes;
  for (const PlacedImage& placed : f.kernel.request.images) {
    if (placed.image.sampling) least = std::min(least, placed.image.texel_bytes());
  }
  return least;
}

bool place_results(FunctionContext& f, const InstructionView& instruction, Type type,
                   FetchDetails& made) {
  const auto results = instruction.elements(instruction[0]);
  if (results.size() != gpu::max_channels) return false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].kind == OperandKind::sink) continue;
    const Register d = f.operands.destination(results[i], type);
    if (d.uniform) return false;
    made.results[i] = d.slot.offset;
  }
  return true;
}

}  // namespace

// tex.geometry.v4.type.type {r, g, b, a}, [handle, {coordinates}] and tld4.channel.2d of that form
bool lower_texture(FunctionContext& f, const InstructionView& instruction) {
  static constexpr Rows<std::string_view, unsigned, 4> channels{
      {{"r", 0U}, {"g", 1U}, {"b", 2U}, {"a", 3U}}};
  const bool gathers = instruction.opcode() == Opcode::tld4;
  if (!gathers && instruction.opcode() != Opcode::tex) return false;
  const auto geometry =
      gathers ? image_geometry(instruction, {"r", "g", "b", "a"}) : image_geometry(instruction, {});
  const Type result = instruction.type(0);
  const Type coordinate = instruction.type(1);
  const bool known_types = (result == Type::f32 || result == Type::u32 || result == Type::s32) &&
                           (coordinate == Type::f32 || coordinate == Type::s32);
  if (!geometry || !known_types || instruction.operands().size() != 2) return false;
  auto& made = f.code.details<FetchDetails>();
  if (gathers) {
    const auto channel = instruction.chosen(channels);
    if (geometry->dimensions != 2 || coordinate != Type::f32 || !channel) return false;
    made.channel = *channel;
  }
  made.gathers = gathers;
  made.floats = coordinate == Type::f32;
  made.gives_floats = result == Type::f32;
  if (!place_results(f, instruction, result, made) ||
      !place_image(f, instruction, instruction[1], coordinate, *geometry, made.operands))
    return false;
  place_part(f, texel_part(f), AccessKind::load, made.operands);
  f.code.emit(texture_ops::fetch).aux = &made;
  return true;
}

// txq.size d, [handle] and suq.size d, [handle]
bool lower_image_query(FunctionContext& f, const InstructionView& instruction) {
  static constexpr Rows<std::string_view, ImageQuestion, 4> questions{
      {{"width", ImageQuestion::width},
       {"height", ImageQuestion::height},
       {"depth", ImageQuestion::depth},
       {"array_size", ImageQuestion::layers}}};
  const bool texture = instruction.opcode() == Opcode::txq;
  if (!texture && instruction.opcode() != Opcode::suq) return false;
  const auto question = instruction.chosen(questions);
  if (!question || instruction.words().modifiers.size() != 2 || !instruction.has("b32") ||
      instruction.operands().size() != 2)
    return false;
  auto& made = f.code.details<QueryDetails>();
  made.texture = texture;
  made.question = *question;
  made.operands.any_shape = true;
  if (!place_handle(f, instruction[1], made.operands.handle)) return false;
  const Register d = f.operands.destination(instruction[0], Type::b32);
  if (d.uniform) return false;
  MicroOp& op = f.code.emit(texture_ops::query);
  op.d = d.slot.offset;
  op.aux = &made;
  return true;
}

}  // namespace demarc::emulate
