// Copies and reductions of a box of a tensor.
#include <algorithm>

#include "lower/bulk_parts.hpp"
#include "lower/instructions.hpp"
#include "lower/types.hpp"
#include "ops/control.hpp"
#include "ops/tensor.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::StateSpace;

namespace {

// Others make another copy: im2col, tile::gather4, of two blocks of a tensor core's pair.
constexpr std::array<std::string_view, 22> tensor_modifiers{"1d",
                                                            "2d",
                                                            "3d",
                                                            "4d",
                                                            "5d",
                                                            "tile",
                                                            "global",
                                                            "shared::cta",
                                                            "shared::cluster",
                                                            "L2",
                                                            "bulk_group",
                                                            "mbarrier::complete_tx::bytes",
                                                            "multicast::cluster",
                                                            "L2::cache_hint",
                                                            "add",
                                                            "min",
                                                            "max",
                                                            "inc",
                                                            "dec",
                                                            "and",
                                                            "or",
                                                            "xor"};

bool all_covered(const InstructionView& instruction) {
  const auto& written = instruction.words().modifiers;
  return std::all_of(written.begin(), written.end(), [](const ptx::ModifierUse& use) {
    return std::find(tensor_modifiers.begin(), tensor_modifiers.end(), use.text) !=
           tensor_modifiers.end();
  });
}

// [map, {coordinates}]
bool place_box(FunctionContext& f, const InstructionView& instruction, const ptx::Operand& operand,
               TensorDetails& made) {
  static constexpr Rows<std::string_view, unsigned, 5> dimensions{
      {{"1d", 1U}, {"2d", 2U}, {"3d", 3U}, {"4d", 4U}, {"5d", 5U}}};
  const auto wanted = instruction.chosen(dimensions);
  if (!wanted || operand.kind != OperandKind::tuple) return false;
  const auto parts = instruction.children(operand);
  if (parts.size() != 2) return false;
  const auto map = f.operands.address(parts[0], StateSpace::none);
  const auto coordinates = instruction.elements(parts[1]);
  if (!map || coordinates.size() != *wanted) return false;
  made.map = part_of_copy(f.code, *map, bulk_granule);
  made.dimensions = *wanted;
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    const Source coordinate = f.operands.source(coordinates[i], ptx::Type::s32);
    made.coordinates[i] = coordinate.slot.offset;
    made.coordinate_uniform[i] = coordinate.uniform;
  }
  return true;
}

// [shared], [map, {coordinates}], [barrier] [, blocks]
bool lower_tensor_load(FunctionContext& f, const InstructionView& instruction,
                       TensorDetails& made) {
  const ArrivalOperands arrival{instruction[0], StateSpace::shared,
                                instruction.operands().subspan(2)};
  if (!place_box(f, instruction, instruction[1], made) ||
      !lower_arrival(f, instruction, arrival, made.arrival) || !made.arrival.signals)
    return false;
  made.from = part_of_copy(f.code, f.operands.at_slot(made.arrival.scratch, StateSpace::global),
                           bulk_granule);
  f.code.note({.kind = AccessKind::load, .bytes = bulk_granule, .place = AddressKind::global});
  return true;
}

// [map, {coordinates}], [shared]
bool lower_tensor_store(FunctionContext& f, const InstructionView& instruction,
                        TensorDetails& made) {
  made.loads = false;
  const auto from = f.operands.address(instruction[1], StateSpace::shared);
  if (!from || !instruction.has("bulk_group") || !place_box(f, instruction, instruction[0], made))
    return false;
  made.from = part_of_copy(f.code, *from, bulk_granule);
  made.arrival.scratch = f.frame.lanes(sizeof(std::uint64_t)).offset;
  made.arrival.to = part_of_copy(
      f.code, f.operands.at_slot(made.arrival.scratch, StateSpace::global), bulk_granule);
  made.reduces = instruction.opcode() == Opcode::cp_reduce_async_bulk_tensor;
  if (made.reduces) {
    const auto kind = atomic_kind(instruction);
    if (!kind) return false;
    made.kind = *kind;
    f.code.order_blocks();
  }
  f.code.note({.kind = made.reduces ? AccessKind::atomic : AccessKind::store,
               .bytes = bulk_granule,
               .place = AddressKind::global});
  return true;
}

}  // namespace

bool lower_tensor_copy(FunctionContext& f, const InstructionView& instruction) {
  switch (instruction.opcode()) {
    case Opcode::cp_async_bulk_tensor:
    case Opcode::cp_reduce_async_bulk_tensor:
      break;
    case Opcode::cp_async_bulk_prefetch_tensor:
      if (!all_covered(instruction)) return false;
      f.code.emit(control::nothing);
      return true;
    default:
      return false;
  }
  if (!all_covered(instruction) || instruction.operands().size() < 2) return false;
  auto& made = f.code.details<TensorDetails>();
  const bool loads = instruction[0].kind == OperandKind::address;
  if (loads && instruction.opcode() != Opcode::cp_async_bulk_tensor) return false;
  if (!(loads ? lower_tensor_load(f, instruction, made) : lower_tensor_store(f, instruction, made)))
    return false;
  f.code.emit(tensor_ops::copy).aux = &made;
  return true;
}

}  // namespace demarc::emulate
