// Parses the statements of a body: instructions, labels, locations, lists of targets.
#include <fmt/format.h>

#include "parse/function_reader.hpp"

namespace demarc::ptx {
namespace {

constexpr std::uint64_t max_targets_of_range = 65'536;

}  // namespace

// False at the end of the body: a directive that can only stand at module scope.
bool FunctionReader::parse_statement() {
  const char c = cursor_.peek();
  if (c == '.') {
    const char* start = cursor_.at;
    const std::uint32_t line = cursor_.line;
    const std::string_view word = word_after_dot();
    if (word == "entry" || word == "func" || word == "visible" || word == "version" ||
        word == "target" || word == "section" || word == "file" || word == "address_size") {
      cursor_.at = start;
      cursor_.line = line;
      fail(fmt::format("'}}' is missing at the end of '{}'",
                       excerpt(module_.functions.back().name, 60)));
      return false;
    }
    cursor_.at = start;
    if (!parse_body_directive()) recover();
    return true;
  }
  const char* start = cursor_.at;
  if (!parse_instruction()) {
    if (cursor_.at == start && !cursor_.done()) ++cursor_.at;
    recover();
  }
  return true;
}

bool FunctionReader::parse_body_directive() {
  const char* start = cursor_.at;
  Declarator declarator;
  declarator.start = start;
  std::string_view word = word_after_dot();
  if (word == "reg") {
    const std::size_t before = body_.registers.size();
    const bool good = declarations_.parse_registers(body_.registers, true);
    for (std::size_t i = before; i < body_.registers.size(); ++i) {
      body_.statements.push_back({StatementKind::registers, static_cast<std::uint32_t>(i)});
    }
    return good;
  }
  if (word == "loc") return debug_.parse_location();
  if (word == "pragma") return keep_directive(start);
  if (word == "extern" || word == "weak" || word == "common") {
    declarator.linkage =
        word == "extern" ? Linkage::external : (word == "weak" ? Linkage::weak : Linkage::common);
    cursor_.skip();
    word = word_after_dot();
  }
  if (word == "align" && !declarations_.parse_leading_alignment(declarator, word)) return false;
  const StateSpace space = find_state_space(word);
  if (space != StateSpace::none) return declarations_.parse_variables(space, declarator, true);
  if (word.empty() || find_type(word) != Type::none) {
    return fail_at(cursor_.offset_of(start), "a statement was expected, found '.'");
  }
  if (word == "branchtargets" || word == "calltargets" || word == "callprototype") {
    return fail_at(cursor_.offset_of(start), fmt::format("'.{}' needs a label before it", word));
  }
  if (!keep_directive(start)) return false;
  unsupported(cursor_.offset_of(start),
              fmt::format("directive '.{}' is not known; kept as it was", excerpt(word, 40)));
  return true;
}

bool FunctionReader::keep_directive(const char* start) {
  std::string_view text;
  if (!read_verbatim(start, text)) return false;
  body_.statements.push_back(
      {StatementKind::verbatim, static_cast<std::uint32_t>(body_.verbatim.size())});
  body_.verbatim.push_back(text);
  return true;
}

bool FunctionReader::parse_label(std::string_view name, std::uint32_t line) {
  ++cursor_.at;  // the colon
  const char* behind = cursor_.at;
  const std::uint32_t line_behind = cursor_.line;
  cursor_.skip();
  if (cursor_.is_next('.')) {
    const char* start = cursor_.at;
    const std::string_view word = word_after_dot();
    if (word == "branchtargets") {
      return parse_targets(TargetSet::Kind::branch_targets, name, start);
    }
    if (word == "calltargets") return parse_targets(TargetSet::Kind::call_targets, name, start);
    if (word == "callprototype") {
      return parse_targets(TargetSet::Kind::call_prototype, name, start);
    }
  }
  cursor_.at = behind;
  cursor_.line = line_behind;
  const auto index = static_cast<std::uint32_t>(body_.labels.size());
  body_.statements.push_back({StatementKind::label, index});
  body_.labels.push_back({name, static_cast<std::uint32_t>(body_.instructions.size()), line});
  declarations_.declare(name, Base::label, index);
  return true;
}

bool FunctionReader::parse_targets(TargetSet::Kind kind, std::string_view name, const char* start) {
  const auto index = static_cast<std::uint32_t>(body_.targets.size());
  body_.statements.push_back({StatementKind::targets, index});
  body_.targets.push_back({kind, name, {}, {}});
  declarations_.declare(name, Base::targets, index);
  if (kind == TargetSet::Kind::call_prototype) {
    while (!cursor_.done() && cursor_.peek() != ';' && cursor_.peek() != '{' &&
           cursor_.peek() != '}') {
      ++cursor_.at;
      cursor_.skip();
    }
    if (!expect(';', "a call prototype")) return false;
    body_.targets[index].text = text_since(start);
    return true;
  }
  do {
    cursor_.skip();
    const std::uint32_t offset = cursor_.offset();
    const std::string_view target = cursor_.name();
    if (target.empty()) return fail("a name was expected in a list of targets, " + found());
    cursor_.skip();
    if (!cursor_.is_next('<')) {
      add_target(index, target, offset);
      continue;
    }
    std::uint64_t count = 0;  // A<2>: A0, A1
    if (!declarations_.parse_range_count(count)) return false;
    if (count > max_targets_of_range) return fail("too many targets in one range");
    for (std::uint64_t i = 0; i < count; ++i)
      add_target(index, module_.keep(fmt::format("{}{}", target, i)), offset);
  } while (cursor_.take(','));
  return expect(';', "a list of targets");
}

void FunctionReader::add_target(std::uint32_t set, std::string_view target, std::uint32_t offset) {
  const std::uint32_t number = names_.intern(target);
  const Binding binding = names_.binding(number);
  const bool branches = body_.targets[set].kind == TargetSet::Kind::branch_targets;
  const Base wanted = branches ? Base::label : Base::function;
  auto& targets = body_.targets[set].targets;
  targets.push_back(binding.base == wanted ? binding.index : no_index);
  if (binding.base == wanted) return;
  pending_.push_back({PendingReference::Kind::target, set,
                      static_cast<std::uint32_t>(targets.size() - 1), number, offset,
                      names_.pending(number), false, true});
  names_.pending(number) = static_cast<std::uint32_t>(pending_.size() - 1);
}

bool FunctionReader::parse_instruction() {
  Instruction instruction;
  instruction.text_offset = cursor_.offset();
  instruction.line = cursor_.line;
  if (cursor_.is_next('@')) {
    if (!operands_.read_guard(instruction)) return false;
    cursor_.skip();
  }
  const std::uint32_t line = cursor_.line;
  std::string_view text;
  const KnownMnemonic* known = mnemonics_.recall(cursor_.at, cursor_.end);
  if (known != nullptr) {
    text = {cursor_.at, known->word.length};
    cursor_.at += known->word.length;
  } else if (!read_mnemonic(text)) {
    return false;
  }
  cursor_.skip();
  if (cursor_.is_next(':') && instruction.predicate == no_index) return parse_label(text, line);
  if (!body_.locations.empty()) {
    instruction.location = static_cast<std::uint32_t>(body_.locations.size()) - 1;
  }
  const bool is_joined = cursor_.is_next('.');
  if (is_joined) {
    text = join_mnemonic(text);
  } else if (known != nullptr && operands_.parse_plain_operands(instruction, *known)) {
    if (!check_.check(instruction, module_.mnemonics[known->number])) return true;
    add_instruction(instruction);
    return true;
  }
  instruction.mnemonic = mnemonics_.find(text);
  const std::string& no_form = why_no_form_of(instruction.mnemonic);
  if (known == nullptr && !is_joined && no_form.empty()) {
    mnemonics_.remember(text, instruction.mnemonic, cursor_.end);
  }
  const Mnemonic& mnemonic = module_.mnemonics[instruction.mnemonic];
  instruction.opcode = mnemonic.opcode;
  if (!no_form.empty()) {
    fail_at(instruction.text_offset, fmt::format("'{}': {}", excerpt(text, 60), no_form));
    return keep_verbatim(instruction, cursor_.at);  // the rest is passed over, braces and all
  }
  if (!parse_operands(instruction, mnemonic)) return false;
  if (mnemonic.understood && !check_.check(instruction, mnemonic)) return true;
  add_instruction(instruction);
  return true;
}

// Looked up once for all instructions that share the mnemonic.
const std::string& FunctionReader::why_no_form_of(std::uint32_t mnemonic) {
  while (no_form_.size() <= mnemonic) {
    no_form_.push_back(why_no_form(module_.mnemonics[no_form_.size()], form_limits_));
  }
  return no_form_[mnemonic];
}

void FunctionReader::add_instruction(const Instruction& instruction) {
  body_.statements.push_back(
      {StatementKind::instruction, static_cast<std::uint32_t>(body_.instructions.size())});
  body_.instructions.push_back(instruction);
}

bool FunctionReader::read_mnemonic(std::string_view& text) {
  const char* first = cursor_.at;
  if (!Cursor::is(*first, char_start)) {
    return fail("an instruction, a label or a directive was expected, " + found());
  }
  const char* last = first + 1;
  while (true) {
    while (Cursor::is(*last, char_name)) ++last;
    if (*last == '.') {
      ++last;
    } else if (last[0] == ':' && last[1] == ':') {
      last += 2;
    } else {
      break;
    }
  }
  cursor_.at = last;
  text = {first, static_cast<std::size_t>(last - first)};
  if (last[-1] == '.' || last[-1] == ':') {
    return fail_at(cursor_.offset_of(first),
                   fmt::format("'{}' lacks a modifier at its end", excerpt(text, 60)));
  }
  return true;
}

// White space may stand before a modifier: `add .s32`.
std::string_view FunctionReader::join_mnemonic(std::string_view text) {
  std::string joined(text);
  while (cursor_.is_next('.') && Cursor::is(cursor_.at[1], char_name)) {
    const char* first = cursor_.at++;
    while (Cursor::is(*cursor_.at, char_name) || *cursor_.at == '.' ||
           (cursor_.at[0] == ':' && cursor_.at[1] == ':')) {
      cursor_.at += *cursor_.at == ':' ? 2 : 1;
    }
    joined += text_since(first);
    cursor_.skip();
  }
  return module_.keep(std::move(joined));
}

bool FunctionReader::parse_operands(Instruction& instruction, const Mnemonic& mnemonic) {
  const char* first = cursor_.at;
  const std::uint32_t line = cursor_.line;
  if (mnemonic.opcode == Opcode::unknown) {
    if (!keep_verbatim(instruction, first)) return false;
    unsupported(
        instruction.text_offset,
        fmt::format("instruction '{}' is not known; kept as it was", excerpt(mnemonic.text, 60)));
    return true;
  }
  const std::size_t pending_before = pending_.size();
  if (!mnemonic.understood) reporter_.mute(true);
  const bool good = parse_operand_list(instruction, mnemonic);
  if (!mnemonic.understood) reporter_.mute(false);
  if (!good) {
    for (std::size_t i = pending_before; i < pending_.size(); ++i) pending_[i].settled = true;
  }
  if (mnemonic.understood) return good;
  if (!good) {
    cursor_.at = first;
    cursor_.line = line;
    if (!keep_verbatim(instruction, first)) return false;
  }
  for (const ModifierUse& use : mnemonic.modifiers) {
    if (use.id == Modifier::unknown) {
      unsupported(
          instruction.text_offset,
          fmt::format("modifier '.{}' is not known; kept as it was", excerpt(use.text, 60)));
    }
  }
  return true;
}

bool FunctionReader::parse_operand_list(Instruction& instruction, const Mnemonic& mnemonic) {
  if (!operands_.read_list(mnemonic)) return false;
  if (operands_.held() > std::numeric_limits<std::uint16_t>::max()) {
    return fail("an instruction has too many operands");
  }
  instruction.operand_count = static_cast<std::uint16_t>(operands_.held());
  if (mnemonic.understood && !check_count(instruction, mnemonic)) return false;
  instruction.first_operand = operands_.keep();
  if (cursor_.is_next(';')) {
    ++cursor_.at;
    return true;
  }
  // A missing semicolon at the end of a line is not a reason to lose the next statement.
  const char* last = cursor_.at;
  while (last > cursor_.begin && (Cursor::is(last[-1], char_blank))) --last;
  fail(fmt::format("';' was expected after '{}', {}", excerpt(mnemonic.text, 60), found()));
  return last > cursor_.begin && last[-1] == '\n';
}

bool FunctionReader::check_count(const Instruction& instruction, const Mnemonic& mnemonic) {
  const OpcodeInfo& row = info(mnemonic.opcode);
  const std::uint32_t count = instruction.operand_count;
  if (count >= row.fewest_operands && count <= row.max_operands) return true;
  const std::string wanted = row.fewest_operands == row.max_operands
                                 ? fmt::format("{}", row.fewest_operands)
                                 : fmt::format("{} to {}", row.fewest_operands, row.max_operands);
  return fail_at(
      instruction.text_offset,
      fmt::format("'{}' takes {} operand{}, found {} (PTX ISA {})", excerpt(mnemonic.text, 60),
                  wanted, row.max_operands == 1 ? "" : "s", count, row.section));
}

bool FunctionReader::keep_verbatim(Instruction& instruction, const char* first) {
  int depth = 0;
  while (true) {
    cursor_.skip();
    if (cursor_.done() || (depth == 0 && cursor_.is_next('}'))) {
      return fail("';' was expected at the end of an instruction, " + found());
    }
    if (cursor_.is_next(';')) break;
    if (cursor_.is_next('{')) ++depth;
    if (cursor_.is_next('}')) --depth;
    ++cursor_.at;
  }
  Operand operand;
  operand.kind = OperandKind::verbatim;
  operand.value = cursor_.offset_of(first);
  operand.index = static_cast<std::uint32_t>(cursor_.at - first);
  ++cursor_.at;
  instruction.operand_count = 1;
  instruction.first_operand = static_cast<std::uint32_t>(body_.operands.size());
  body_.operands.push_back(operand);
  return true;
}

}  // namespace demarc::ptx
