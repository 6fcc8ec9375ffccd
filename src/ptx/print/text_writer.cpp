// Appends instructions and operands to a string as text.
#include "print/text_writer.hpp"

#include <array>
#include <charconv>

#include "demarc/base/text.hpp"

namespace demarc::ptx {

void TextWriter::number(std::uint64_t value) {
  std::array<char, 20> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out_.append(digits.data(), result.ptr);
}

void TextWriter::reg(std::uint32_t number_in_body) {
  const RegisterRange& range = body_.range_of(number_in_body);
  out_ += range.name;
  if (range.is_range) number(number_in_body - range.first);
}

void TextWriter::mnemonic(const Mnemonic& mnemonic) {
  if (mnemonic.opcode == Opcode::unknown) {
    out_ += mnemonic.text;
    return;
  }
  out_ += info(mnemonic.opcode).name;
  for (const ModifierUse& use : mnemonic.modifiers) {
    out_ += '.';
    out_ +=
        use.id == Modifier::unknown || use.id == Modifier::shape_mnk ? use.text : info(use.id).text;
  }
}

void TextWriter::instruction(const Instruction& instruction) {
  if (instruction.predicate != no_index) {
    out_ += instruction.predicate_negated ? "@!" : "@";
    reg(instruction.predicate);
    out_ += ' ';
  }
  mnemonic(module_.mnemonic(instruction));
  if (instruction.operand_count > 0) {
    out_ += ' ';
    operands(body_.operands_of(instruction));
  }
  out_ += ';';
}

void TextWriter::operands(std::span<const Operand> list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out_ += ", ";
    operand(list[i]);
  }
}

void TextWriter::selector(const Operand& operand) {
  constexpr std::array<std::string_view, 13> names = {
      "", ".x", ".y", ".z", ".w", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1", ".unified", ""};
  out_ += names[static_cast<std::size_t>(operand.selector)];
  if (operand.selector != Selector::other) return;
  out_ += '.';
  for (std::uint64_t left = operand.value; left != 0; left >>= 8U) {
    out_ += static_cast<char>(left & 0xFFU);
  }
}

void TextWriter::base(const Operand& operand) {
  const std::uint32_t i = operand.index;
  switch (operand.base) {
    case Base::none:
      break;
    case Base::reg:
      reg(i);
      break;
    case Base::parameter:
      out_ += function_.parameters[i].name;
      break;
    case Base::result:
      out_ += function_.results[i].name;
      break;
    case Base::variable:
      out_ += body_.variables[i].name;
      break;
    case Base::global:
      out_ += module_.variables[i].name;
      break;
    case Base::function:
      out_ += module_.functions[i].name;
      break;
    case Base::label:
      out_ += body_.labels[i].name;
      break;
    case Base::targets:
      out_ += body_.targets[i].name;
      break;
    case Base::unresolved:
      out_ += module_.names[i];
      break;
  }
}

void TextWriter::offset(const Operand& operand) {
  if (operand.value == 0 && !operand.has_offset) return;
  const std::int64_t offset = operand.offset();
  out_ += offset < 0 ? "+-" : "+";
  number(offset < 0 ? 0 - operand.value : operand.value);
}

void TextWriter::immediate(const Operand& operand) {
  switch (operand.immediate) {
    case ImmediateKind::s64: {
      const bool is_least = operand.value == 1ULL << 63U;  // which, as a literal, is unsigned
      const bool is_negative = operand.offset() < 0 && !is_least;
      out_ += is_least ? "(.s64)" : (is_negative ? "-" : "");
      number(is_negative ? 0 - operand.value : operand.value);
      break;
    }
    case ImmediateKind::u64:
      number(operand.value);
      // Without the suffix a value that fits would be signed.
      if (operand.offset() >= 0) out_ += 'U';
      break;
    case ImmediateKind::f32:
      append(out_, "0f{:08X}", operand.value);
      break;
    case ImmediateKind::f64:
      append(out_, "0d{:016X}", operand.value);
      break;
  }
}

void TextWriter::operand(const Operand& operand) {
  if (operand.negated) out_ += '!';
  if (operand.minus) out_ += '-';
  switch (operand.kind) {
    case OperandKind::reg:
      reg(operand.index);
      selector(operand);
      break;
    case OperandKind::special:
      out_ += info(static_cast<SpecialRegister>(operand.index)).name;
      selector(operand);
      break;
    case OperandKind::immediate:
      immediate(operand);
      break;
    case OperandKind::symbol:
      base(operand);
      offset(operand);
      break;
    case OperandKind::address:
      out_ += '[';
      base(operand);
      if (operand.base == Base::none) {
        immediate(operand);
      } else {
        offset(operand);
      }
      out_ += ']';
      selector(operand);
      break;
    case OperandKind::vector:
      out_ += '{';
      operands(body_.children(operand));
      out_ += '}';
      break;
    case OperandKind::list:
      out_ += '(';
      operands(body_.children(operand));
      out_ += ')';
      break;
    case OperandKind::pair:
      this->operand(body_.children(operand)[0]);
      out_ += '|';
      this->operand(body_.children(operand)[1]);
      break;
    case OperandKind::tuple: {
      // The first child prints its own brackets, which are those of the whole.
      const auto children = body_.children(operand);
      this->operand(children[0]);
      out_.pop_back();
      for (const Operand& child : children.subspan(1)) {
        out_ += ", ";
        this->operand(child);
      }
      out_ += ']';
      break;
    }
    case OperandKind::element:
      this->operand(body_.children(operand)[0]);
      out_ += '[';
      this->operand(body_.children(operand)[1]);
      out_ += ']';
      break;
    case OperandKind::sink:
      out_ += '_';
      break;
    case OperandKind::verbatim:
      out_ += std::string_view(*module_.text)
                  .substr(static_cast<std::size_t>(operand.value), operand.index);
      break;
  }
}

}  // namespace demarc::ptx
