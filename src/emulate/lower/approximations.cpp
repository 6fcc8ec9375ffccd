// Lists what a card would do differently in a kernel. The table of docs/emulate.md says how large
// the differences are.
#include "lower/approximations.hpp"

#include <algorithm>

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

std::string_view approximated_function(const ptx::Mnemonic& words) {
  const auto is = [&](Type type) {
    return std::find(words.types.begin(), words.types.end(), type) != words.types.end();
  };
  const bool roughly = std::any_of(
      words.modifiers.begin(), words.modifiers.end(),
      [](const ptx::ModifierUse& use) { return use.text == "approx" || use.text == "full"; });
  if (!roughly) return {};
  if (words.opcode == Opcode::div) {
    return "multiplied by the rounded reciprocal; a card's reciprocal may differ in its last bit";
  }
  return is(Type::f64) ? "the full result; a card gives the upper half of the word"
                       : "computed in double precision and rounded; a card's last bits may differ";
}

std::string_view approximated_special(ptx::SpecialRegister special) {
  switch (special) {
    case ptx::SpecialRegister::clock:
    case ptx::SpecialRegister::clock_hi:
    case ptx::SpecialRegister::clock64:
    case ptx::SpecialRegister::globaltimer:
    case ptx::SpecialRegister::globaltimer_lo:
    case ptx::SpecialRegister::globaltimer_hi:
      return "counts the warp's instructions instead of time";
    default:
      return {};
  }
}

// Where a texture of the launch is filtered.
std::string_view approximated_fetch(const KernelContext& kernel, const ptx::Mnemonic& words) {
  const auto& images = kernel.request.images;
  const bool filters = std::any_of(images.begin(), images.end(), [](const PlacedImage& placed) {
    return placed.image.sampling && placed.image.sampling->filters;
  });
  if (!filters || words.type(1) != Type::f32) return {};
  return "where texels are filtered: weights of 8 bits, the sum in double precision, rounded once; "
         "a card's last bits may differ";
}

std::string_view approximated_instruction(const KernelContext& kernel, const ptx::Mnemonic& words) {
  switch (words.opcode) {
    case Opcode::tex:
      return approximated_fetch(kernel, words);
    case Opcode::cp_async:
    case Opcode::cp_async_bulk:
    case Opcode::cp_async_bulk_tensor:
    case Opcode::st_async:
    case Opcode::red_async:
      return "done when issued: a missing wait is not found";
    case Opcode::mbarrier_try_wait:
      return "does not wait: the other warps run while the phase is not over";
    default:
      return approximated_function(words);
  }
}

}  // namespace

void note_approximation(const KernelContext& kernel, const InstructionView& instruction) {
  const ptx::Mnemonic& words = instruction.words();
  std::string name(words.text);
  std::string_view what = approximated_instruction(kernel, words);
  if (what.empty() && words.opcode == Opcode::mov) {
    const ptx::Operand& from = instruction.operands().back();
    if (from.kind != ptx::OperandKind::special) return;
    const auto special = static_cast<ptx::SpecialRegister>(from.index);
    what = approximated_special(special);
    name = ptx::info(special).name;
  }
  if (what.empty()) return;
  auto& known = kernel.program.approximations;
  if (std::any_of(known.begin(), known.end(),
                  [&](const ptx::Diagnostic& other) { return other.text == name; }))
    return;
  const std::string& text = *kernel.module().text;
  const ptx::Instruction& written = instruction.written();
  const auto line_start = text.rfind('\n', written.text_offset) + 1;  // npos + 1 == 0
  known.push_back({ptx::Severity::approximated, written.line,
                   static_cast<std::uint32_t>(written.text_offset - line_start + 1),
                   std::string(what), std::move(name)});
}

}  // namespace demarc::emulate
