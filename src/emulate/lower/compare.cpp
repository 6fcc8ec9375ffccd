// Comparisons: setp, set, selp and slct.
#include <array>
#include <optional>

#include "lower/lower.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;
using ptx::TypeKind;

namespace {

struct CompareWord {
  std::string_view text;
  Compare how;
  bool is_unsigned;  // lo, ls, hi, hs
};
constexpr std::array<CompareWord, 18> compare_words{{{"eq", Compare::eq, false},
                                                     {"ne", Compare::ne, false},
                                                     {"lt", Compare::lt, false},
                                                     {"le", Compare::le, false},
                                                     {"gt", Compare::gt, false},
                                                     {"ge", Compare::ge, false},
                                                     {"lo", Compare::lt, true},
                                                     {"ls", Compare::le, true},
                                                     {"hi", Compare::gt, true},
                                                     {"hs", Compare::ge, true},
                                                     {"equ", Compare::equ, false},
                                                     {"neu", Compare::neu, false},
                                                     {"ltu", Compare::ltu, false},
                                                     {"leu", Compare::leu, false},
                                                     {"gtu", Compare::gtu, false},
                                                     {"geu", Compare::geu, false},
                                                     {"num", Compare::num, false},
                                                     {"nan", Compare::nan, false}}};

// The vector row of a comparison, and whether its operands are swapped.
struct CompareRow {
  Alu alu;
  bool swap;
};

#define DEMARC_WIDTHS(name) \
  bytes == 2 ? Alu::name##16 : (bytes == 4 ? Alu::name##32 : Alu::name##64)

std::optional<CompareRow> compare_row(Compare how, Type type, bool is_unsigned) {
  const std::uint32_t bytes = ptx::byte_size(type);
  const TypeKind kind = ptx::info(type).kind;
  if (type == Type::f32 || type == Type::f64) {
    const bool f32 = type == Type::f32;
    switch (how) {
      case Compare::eq:
        return CompareRow{f32 ? Alu::eq_f32 : Alu::eq_f64, false};
      case Compare::ne:
        return CompareRow{f32 ? Alu::ne_f32 : Alu::ne_f64, false};
      case Compare::lt:
        return CompareRow{f32 ? Alu::lt_f32 : Alu::lt_f64, false};
      case Compare::le:
        return CompareRow{f32 ? Alu::le_f32 : Alu::le_f64, false};
      case Compare::gt:
        return CompareRow{f32 ? Alu::lt_f32 : Alu::lt_f64, true};
      case Compare::ge:
        return CompareRow{f32 ? Alu::le_f32 : Alu::le_f64, true};
      case Compare::equ:
        return CompareRow{f32 ? Alu::equ_f32 : Alu::equ_f64, false};
      case Compare::neu:
        return CompareRow{f32 ? Alu::neu_f32 : Alu::neu_f64, false};
      case Compare::ltu:
        return CompareRow{f32 ? Alu::ltu_f32 : Alu::ltu_f64, false};
      case Compare::leu:
        return CompareRow{f32 ? Alu::leu_f32 : Alu::leu_f64, false};
      case Compare::gtu:
        return CompareRow{f32 ? Alu::ltu_f32 : Alu::ltu_f64, true};
      case Compare::geu:
        return CompareRow{f32 ? Alu::leu_f32 : Alu::leu_f64, true};
      case Compare::num:
        return CompareRow{f32 ? Alu::num_f32 : Alu::num_f64, false};
      case Compare::nan:
        return CompareRow{f32 ? Alu::nan_f32 : Alu::nan_f64, false};
    }
  }
  if (kind != TypeKind::bits && kind != TypeKind::unsigned_ && kind != TypeKind::signed_)
    return std::nullopt;
  if (bytes < 2 || bytes > 8) return std::nullopt;
  const bool is_signed = kind == TypeKind::signed_ && !is_unsigned;
  switch (how) {
    case Compare::eq:
      return CompareRow{DEMARC_WIDTHS(eq_b), false};
    case Compare::ne:
      return CompareRow{DEMARC_WIDTHS(ne_b), false};
    case Compare::lt:
      return CompareRow{is_signed ? DEMARC_WIDTHS(lt_s) : DEMARC_WIDTHS(lt_u), false};
    case Compare::le:
      return CompareRow{is_signed ? DEMARC_WIDTHS(le_s) : DEMARC_WIDTHS(le_u), false};
    case Compare::gt:
      return CompareRow{is_signed ? DEMARC_WIDTHS(lt_s) : DEMARC_WIDTHS(lt_u), true};
    case Compare::ge:
      return CompareRow{is_signed ? DEMARC_WIDTHS(le_s) : DEMARC_WIDTHS(le_u), true};
    default:
      return std::nullopt;
  }
}

}  // namespace

bool Lowering::lower_compare(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  if (instruction.opcode == Opcode::selp) {
    const Register d = destination(list[0]);
    const Type type = words.type();
    const Source c = source(list[3], Type::pred);
    if (type == Type::pred) return false;
    const Source a = source(list[1], type);
    const Source b = source(list[2], type);
    const std::uint32_t bytes = d.width;
    if (bytes < 2) return false;
    // A negated condition swaps the two.
    const Source& yes = c.negated ? b : a;
    const Source& no = c.negated ? a : b;
    emit_alu(DEMARC_WIDTHS(selp_b), d, {yes, no, {c.slot, false, 0, false}});
    return true;
  }
  if (instruction.opcode == Opcode::slct) {
    const Register d = destination(list[0]);
    const Type type = words.type(0);
    LaneDetails& made =
        emit_lanes(lane::slct, d,
                   {source(list[1], type), source(list[2], type), source(list[3], words.type(1))});
    made.from = lane_type(words.type(1));
    made.ftz = has(instruction, "ftz");
    return true;
  }
  Compare how = Compare::eq;
  bool is_unsigned = false;
  bool found = false;
  for (const CompareWord& word : compare_words) {
    if (!has(instruction, word.text)) continue;
    how = word.how;
    is_unsigned = word.is_unsigned;
    found = true;
  }
  if (!found) return false;
  CompareForm form{how, Logic::none};
  if (list.size() > 3) {
    form.logic = has(instruction, "and")  ? Logic::conjunction
                 : has(instruction, "or") ? Logic::disjunction
                                          : Logic::exclusive;
  }

  if (instruction.opcode == Opcode::set) {
    const Type from = words.type(1);
    const Register d = destination(list[0]);
    LaneDetails& made =
        list.size() > 3 ? emit_lanes(lane::set, d,
                                     {source(list[1], from), source(list[2], from),
                                      source(list[3], Type::pred)})
                        : emit_lanes(lane::set, d, {source(list[1], from), source(list[2], from)});
    made.type = lane_type(words.type(0));
    made.from = lane_type(from);
    made.form = form;
    made.ftz = has(instruction, "ftz");
    return true;
  }

  const Type type = words.type();
  const bool pair = list[0].kind == OperandKind::pair;
  const auto row = compare_row(how, type, is_unsigned);
  if (!pair && form.logic == Logic::none && row && !has(instruction, "ftz") &&
      list[0].kind == OperandKind::reg) {
    const Register d = destination(list[0]);
    const Source a = source(list[1], type);
    const Source b = source(list[2], type);
    if (row->swap) {
      emit_alu(row->alu, d, {b, a});
    } else {
      emit_alu(row->alu, d, {a, b});
    }
    return true;
  }
  if (is_unsigned && ptx::info(type).kind == TypeKind::signed_) return false;
  const auto results = pair ? body_->children(list[0]) : list.subspan(0, 1);
  const bool first_sink = results[0].kind == OperandKind::sink;
  Register d;
  if (first_sink) {
    d.slot = take_slot(4, 4);
  } else {
    d = destination(results[0]);
  }
  LaneDetails& made =
      form.logic != Logic::none
          ? emit_lanes(lane::setp, d,
                       {source(list[1], type), source(list[2], type), source(list[3], Type::pred)})
          : emit_lanes(lane::setp, d, {source(list[1], type), source(list[2], type)});
  made.type = lane_type(type);
  made.form = form;
  made.ftz = has(instruction, "ftz");
  if (pair && results[1].kind != OperandKind::sink) {
    const Register q = destination(results[1]);
    made.has_second = true;
    made.second_slot = q.slot;
    made.second_width = q.width;
  }
  return made.type != LaneType::none;
}

#undef DEMARC_WIDTHS

}  // namespace demarc::emulate
