// Lists the operands of instructions, and how results depend on them.
#include "lower/tracking.hpp"

#include <algorithm>

#include "demarc/ptx/def_use.hpp"
#include "lower/immediate.hpp"
#include "lower/types.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OpcodeGroup;
using ptx::OperandKind;
using ptx::Type;

namespace {

bool is_integer(Type type) {
  const ptx::TypeKind kind = ptx::info(type).kind;
  return kind == ptx::TypeKind::bits || kind == ptx::TypeKind::unsigned_ ||
         kind == ptx::TypeKind::signed_;
}

// Results that are bits of the first operands; the operands behind them choose which.
struct RouteRow {
  Opcode opcode;
  std::uint8_t routed;
};
constexpr std::array<RouteRow, 8> route_rows{{{Opcode::shl, 1},
                                              {Opcode::shr, 1},
                                              {Opcode::selp, 2},
                                              {Opcode::bfe, 1},
                                              {Opcode::bfi, 2},
                                              {Opcode::prmt, 2},
                                              {Opcode::shf, 2},
                                              {Opcode::brev, 1}}};

constexpr std::uint8_t truth_of_a = 0xf0;
constexpr std::uint8_t truth_of_b = 0xcc;
constexpr Rows<Opcode, std::uint8_t, 4> truth_rows{
    {{Opcode::and_, truth_of_a& truth_of_b},
     {Opcode::or_, truth_of_a | truth_of_b},
     {Opcode::xor_, truth_of_a ^ truth_of_b},
     {Opcode::not_, static_cast<std::uint8_t>(~truth_of_a)}}};

TrackRule shuffle_rule(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, TrackRule, 4> modes{
      {{"up", TrackRule::shuffle_up},
       {"down", TrackRule::shuffle_down},
       {"bfly", TrackRule::shuffle_butterfly},
       {"idx", TrackRule::shuffle_index}}};
  return instruction.chosen(modes).value_or(TrackRule::lanes);
}

// Whether it is plain arithmetic modulo 2^n, of one value.
bool wraps(const InstructionView& instruction) {
  return is_integer(instruction.type()) && !instruction.has_any({"sat", "cc"});
}

void choose_rule(const InstructionView& instruction, TrackedInstruction& made) {
  if (const auto truth = look_up(truth_rows, instruction.opcode())) {
    made.rule = TrackRule::bitwise;
    made.truth = *truth;
    return;
  }
  for (const RouteRow& row : route_rows) {
    if (row.opcode != instruction.opcode()) continue;
    made.rule = TrackRule::route;
    made.routed = row.routed;
    return;
  }
  switch (instruction.opcode()) {
    case Opcode::mov:
      if (instruction.words().vector_width > 1) return;
      made.rule = instruction.type() == Type::pred ? TrackRule::bitwise : TrackRule::route;
      made.truth = truth_of_a;
      made.routed = UINT8_MAX;
      return;
    case Opcode::cvt:
      if (!is_integer(instruction.type(0)) || !is_integer(instruction.type(1)) ||
          instruction.has("sat"))
        return;
      made.rule = TrackRule::route;
      made.routed = 1;
      return;
    case Opcode::lop3:
      if (instruction[0].kind == OperandKind::pair) return;
      made.rule = TrackRule::bitwise;
      made.truth = static_cast<std::uint8_t>(instruction[4].value);
      return;
    case Opcode::add:
      if (wraps(instruction)) made.rule = TrackRule::sum;
      return;
    case Opcode::sub:
      if (wraps(instruction)) made.rule = TrackRule::difference;
      return;
    case Opcode::mul:
    case Opcode::mad:
      if (wraps(instruction) && !instruction.has("hi")) made.rule = TrackRule::product;
      return;
    case Opcode::setp:
      if (instruction.operands().size() == 3 && is_integer(instruction.type()) &&
          instruction.has_any({"eq", "ne"}))
        made.rule = TrackRule::equality;
      return;
    case Opcode::shfl:
      made.rule = shuffle_rule(instruction);
      return;
    case Opcode::ld:
    case Opcode::ldu:
    case Opcode::st:
      made.rule = TrackRule::access;
      made.is_signed = is_signed(instruction.type());
      return;
    case Opcode::call:
      made.rule = TrackRule::call;
      return;
    default:
      if (instruction.group() == OpcodeGroup::warp || instruction.group() == OpcodeGroup::matrix)
        made.rule = TrackRule::lanes;
  }
}

// The operands that an instruction has, in three lists.
class OperandLists {
 public:
  OperandLists(FunctionContext& f, const InstructionView& instruction)
      : f_(f), instruction_(instruction) {
    ptx::for_each_written(f.function.body, instruction.written(),
                          [&](std::uint32_t reg) { is_written_.push_back(reg); });
    for (std::size_t i = 0; i < instruction.operands().size(); ++i)
      list(instruction[i], i == 0 && !is_written_.empty(), false);
  }

  std::vector<TrackedOperand> written, read, addresses;

 private:
  void list(const ptx::Operand& operand, bool writes, bool addresses_memory) {
    if (operand.has_children()) {
      const bool inside = addresses_memory || operand.kind == OperandKind::tuple;
      for (const ptx::Operand& child : instruction_.children(operand)) list(child, writes, inside);
      return;
    }
    switch (operand.kind) {
      case OperandKind::reg: {
        TrackedOperand made = place_of(f_.frame.reg(operand.index));
        made.negated = operand.negated;
        // Parts of registers (video instructions) are not told apart.
        if (operand.selector != ptx::Selector::none || operand.minus) made.negated = false;
        (writes ? written : addresses_memory ? addresses : read).push_back(made);
        break;
      }
      case OperandKind::address:
        if (operand.base == ptx::Base::reg)
          addresses.push_back(place_of(f_.frame.reg(operand.index)));
        break;
      case OperandKind::immediate: {
        if (writes || addresses_memory) break;
        const Type type = instruction_.type();
        const Source value = f_.frame.constant(type, immediate_bits(operand, type));
        read.push_back({.slot = value.slot.offset,
                        .width = value.width,
                        .uniform = value.uniform,
                        .negated = type == Type::pred && operand.negated});
        break;
      }
      case OperandKind::special:
      case OperandKind::symbol:
        if (!writes) read.push_back({.width = 8, .uniform = true});
        break;
      default:
        break;
    }
  }

  static TrackedOperand place_of(const Register& reg) {
    return {.slot = reg.slot.offset, .width = reg.width, .uniform = reg.uniform};
  }

  FunctionContext& f_;
  const InstructionView& instruction_;
  std::vector<std::uint32_t> is_written_;
};

bool is_load_handler(const Program& program, Handler handler) {
  const auto& loads = program.tables.memory->load;
  return handler == memory_ops::load_wide ||
         std::find(std::begin(loads), std::end(loads), handler) != std::end(loads);
}

}  // namespace

std::vector<bool> read_registers(const ptx::Function& function) {
  const ptx::Body& body = function.body;
  std::vector<bool> out(body.register_count, false);
  for (const ptx::Instruction& instruction : body.instructions)
    ptx::for_each_read(body, instruction, [&](std::uint32_t reg) { out[reg] = true; });
  for (const ptx::RegisterRange& range : body.registers) {
    const bool is_result =
        std::any_of(function.results.begin(), function.results.end(),
                    [&](const ptx::Variable& result) { return result.name == range.name; });
    if (is_result) out[range.first] = true;
  }
  return out;
}

void track(FunctionContext& f, const InstructionView& instruction,
           const std::vector<bool>& is_read) {
  Program& program = f.kernel.program;
  TrackedInstruction made;
  choose_rule(instruction, made);
  OperandLists lists(f, instruction);
  made.first = static_cast<std::uint32_t>(program.tracked_operands.size());
  made.written = static_cast<std::uint8_t>(lists.written.size());
  made.read = static_cast<std::uint8_t>(lists.read.size());
  made.addresses = static_cast<std::uint8_t>(lists.addresses.size());
  made.routed = std::min(made.routed, made.read);
  for (const auto* list : {&lists.written, &lists.read, &lists.addresses})
    program.tracked_operands.insert(program.tracked_operands.end(), list->begin(), list->end());
  program.tracked[f.code.instruction()] = made;
  if (made.rule != TrackRule::access) return;
  bool matters = false;
  ptx::for_each_written(f.function.body, instruction.written(),
                        [&](std::uint32_t reg) { matters = matters || is_read[reg]; });
  if (!matters) return;
  for (std::size_t i = program.code.size(); i-- > 0;) {
    MicroOp& op = program.code[i];
    if (op.instruction != f.code.instruction()) break;
    if (is_load_handler(program, op.run)) op.flags |= memory_tracked;
  }
}

}  // namespace demarc::emulate
