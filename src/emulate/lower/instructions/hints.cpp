// Instructions that change nothing here: hints to caches, orderings, waits.
#include "groups.hpp"
#include "lower/instructions.hpp"
#include "lower/types.hpp"
#include "ops/control.hpp"
#include "races.hpp"

namespace demarc::emulate {

using ptx::Opcode;

// Memory is coherent, and accesses happen in order: fences matter to race checks alone. Those
// between proxies do not.
bool lower_hint(FunctionContext& f, const InstructionView& instruction) {
  switch (instruction.opcode()) {
    case Opcode::createpolicy: {
      const Register d = f.operands.destination(instruction[0], ptx::Type::b64);
      f.code.alu(Alu::mov_b64, d, {f.frame.constant(ptx::Type::b64, 0)});
      return true;
    }
    case Opcode::prefetch:
    case Opcode::prefetchu:
    case Opcode::applypriority:
    case Opcode::griddepcontrol:
    case Opcode::pmevent:
    case Opcode::setmaxnreg:
      f.code.emit(control::nothing);
      return true;
    case Opcode::nanosleep:
      f.code.emit(control::yield);
      return true;
    case Opcode::membar:
    case Opcode::fence: {
      const bool orders = instruction.opcode() == Opcode::membar ||
                          instruction.has_any({"sc", "acq_rel", "acquire", "release"});
      f.code.emit(orders ? race_ops::fence : control::nothing);
      f.kernel.program.orders_warps |= orders;
      return true;
    }
    default:
      return false;
  }
}

}  // namespace demarc::emulate
