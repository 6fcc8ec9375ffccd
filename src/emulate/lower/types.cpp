// Tables of types.
#include "lower/types.hpp"

#include "lower/lookup.hpp"

namespace demarc::emulate {

using ptx::Type;
using ptx::TypeKind;

LaneType lane_type(Type type) {
  static constexpr Rows<Type, LaneType, 25> rows{
      {{Type::pred, LaneType::pred},     {Type::b8, LaneType::b8},
       {Type::b16, LaneType::b16},       {Type::b32, LaneType::b32},
       {Type::b64, LaneType::b64},       {Type::u8, LaneType::u8},
       {Type::u16, LaneType::u16},       {Type::u32, LaneType::u32},
       {Type::u64, LaneType::u64},       {Type::s8, LaneType::s8},
       {Type::s16, LaneType::s16},       {Type::s32, LaneType::s32},
       {Type::s64, LaneType::s64},       {Type::f16, LaneType::f16},
       {Type::bf16, LaneType::bf16},     {Type::tf32, LaneType::tf32},
       {Type::f32, LaneType::f32},       {Type::f64, LaneType::f64},
       {Type::f16x2, LaneType::f16x2},   {Type::bf16x2, LaneType::bf16x2},
       {Type::u16x2, LaneType::u16x2},   {Type::s16x2, LaneType::s16x2},
       {Type::e4m3x2, LaneType::e4m3x2}, {Type::e5m2x2, LaneType::e5m2x2},
       {Type::f32x2, LaneType::f32x2}}};
  return look_up(rows, type).value_or(LaneType::none);
}

std::optional<AtomicType> atomic_type(Type type) {
  static constexpr Rows<Type, AtomicType, 13> rows{{{Type::b32, AtomicType::b32},
                                                    {Type::b64, AtomicType::b64},
                                                    {Type::u32, AtomicType::u32},
                                                    {Type::u64, AtomicType::u64},
                                                    {Type::s32, AtomicType::s32},
                                                    {Type::s64, AtomicType::s64},
                                                    {Type::f16, AtomicType::f16},
                                                    {Type::bf16, AtomicType::bf16},
                                                    {Type::f16x2, AtomicType::f16x2},
                                                    {Type::bf16x2, AtomicType::bf16x2},
                                                    {Type::f32, AtomicType::f32},
                                                    {Type::f64, AtomicType::f64},
                                                    {Type::b16, AtomicType::b16}}};
  return look_up(rows, type);
}

std::optional<AtomicKind> atomic_kind(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, AtomicKind, 10> words{{{"add", AtomicKind::add},
                                                                 {"min", AtomicKind::min},
                                                                 {"max", AtomicKind::max},
                                                                 {"inc", AtomicKind::inc},
                                                                 {"dec", AtomicKind::dec},
                                                                 {"exch", AtomicKind::exch},
                                                                 {"cas", AtomicKind::cas},
                                                                 {"and", AtomicKind::bit_and},
                                                                 {"or", AtomicKind::bit_or},
                                                                 {"xor", AtomicKind::bit_xor}}};
  return instruction.chosen(words);
}

bool is_signed(Type type) {
  return ptx::info(type).kind == TypeKind::signed_;
}

bool is_integer(Type type) {
  const TypeKind kind = ptx::info(type).kind;
  return kind == TypeKind::bits || kind == TypeKind::unsigned_ || kind == TypeKind::signed_;
}

bool is_floating(Type type) {
  const TypeKind kind = ptx::info(type).kind;
  return kind == TypeKind::floating || kind == TypeKind::packed;
}

Alu move_of_width(std::uint32_t bytes) {
  return bytes == 1 ? Alu::mov_b8 : AluByWidth{Alu::mov_b16, Alu::mov_b32, Alu::mov_b64}.of(bytes);
}

}  // namespace demarc::emulate
