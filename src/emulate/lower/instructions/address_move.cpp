// Addresses from one state space to another: cvta, isspacep, mapa and getctarank.
#include "lower/instructions.hpp"
#include "lower/types.hpp"
#include "machine.hpp"
#include "ops/cluster.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::StateSpace;
using ptx::Type;

namespace {

constexpr std::uint8_t address_width = 8;

bool lower_isspacep(FunctionContext& f, const InstructionView& instruction) {
  static constexpr Rows<StateSpace, AddressWindow, 4> windows{
      {{StateSpace::shared, AddressWindow::shared},
       {StateSpace::local, AddressWindow::local},
       {StateSpace::constant, AddressWindow::constant},
       {StateSpace::param, AddressWindow::param}}};
  const Register d = f.operands.destination(instruction[0], Type::pred);
  LaneDetails& made =
      f.code.lanes(lane::isspacep, d, {f.operands.any_source(instruction[1], Type::u64)});
  made.form = look_up(windows, instruction.words().space).value_or(AddressWindow::global);
  return true;
}

// Generic addresses of global memory are its own; the other spaces have a window.
bool lower_cvta(FunctionContext& f, const InstructionView& instruction) {
  static constexpr Rows<StateSpace, std::uint64_t, 4> windows{
      {{StateSpace::shared, shared_window},
       {StateSpace::local, local_window},
       {StateSpace::constant, constant_window},
       {StateSpace::param, param_window}}};
  const Register d = f.operands.destination(instruction[0], instruction.type());
  const Source a = f.operands.source(instruction[1], instruction.type());
  if (d.width != address_width || a.width != address_width) return false;
  if (const auto window = look_up(windows, instruction.words().space)) {
    f.code.alu(instruction.has("to") ? Alu::sub_b64 : Alu::add_b64, d,
               {a, f.frame.constant(Type::u64, *window)});
  } else {
    f.code.alu(Alu::mov_b64, d, {a});
  }
  return true;
}

bool lower_mapa(FunctionContext& f, const InstructionView& instruction) {
  const Register d = f.operands.destination(instruction[0], instruction.type());
  const Source a = f.operands.source(instruction[1], instruction.type());
  const Source rank = f.operands.source(instruction[2], Type::u32);
  const bool generic = instruction.words().space == StateSpace::none;
  f.kernel.program.in_clusters = true;
  f.code.lanes(generic ? lane::map_generic_to_rank : lane::map_to_rank, d, {a, rank});
  return d.width == a.width;
}

bool lower_getctarank(FunctionContext& f, const InstructionView& instruction) {
  const Register d = f.operands.destination(instruction[0], Type::u32);
  const Source a = f.operands.source(instruction[1], instruction.type());
  const Register own = f.frame.uniform(sizeof(std::uint32_t));
  f.code.emit(cluster_ops::read_rank).d = own.slot.offset;
  f.code.lanes(lane::rank_of, d, {a, value_of(own)});
  return d.width == 4;
}

}  // namespace

bool lower_address_move(FunctionContext& f, const InstructionView& instruction) {
  switch (instruction.opcode()) {
    case Opcode::isspacep:
      return lower_isspacep(f, instruction);
    case Opcode::cvta:
      return lower_cvta(f, instruction);
    case Opcode::mapa:
      return lower_mapa(f, instruction);
    case Opcode::getctarank:
      return lower_getctarank(f, instruction);
    default:
      return false;
  }
}

}  // namespace demarc::emulate
