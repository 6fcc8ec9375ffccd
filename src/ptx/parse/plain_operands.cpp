// Reads the operands that most instructions have, in a fast way: numbered registers, literals and
// [register+offset], with at most one blank after a comma. Everything else, including faulty text,
// is left to the general reader, which starts again at the first operand.
#include <bit>

#include "parse/constant_expression.hpp"
#include "parse/operand_reader.hpp"

namespace demarc::ptx {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
// 1 .. 26 for a small letter, 0 for everything else.
constexpr std::uint32_t letter_number(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<std::uint32_t>(c - 'a') + 1 : 0;
}

// The number whose digits, as values, are the bytes, the first one lowest.
constexpr std::uint32_t eight_digits(std::uint64_t values) {
  values = (values * 10) + (values >> 8U);  // pairs, in bytes 0, 2, 4, 6
  values = (((values & 0x000000FF000000FFULL) * 0x000F424000000064ULL) +
            (((values >> 16U) & 0x000000FF000000FFULL) * 0x0000271000000001ULL)) >>
           32U;
  return static_cast<std::uint32_t>(values);
}
static_assert(eight_digits(0x0807060504030201ULL) == 12345678);

}  // namespace

bool OperandReader::parse_plain_guard(Instruction& instruction) {
  const char* at = cursor_.at + 1;
  const bool negated = *at == '!';
  if (negated) ++at;
  std::uint32_t reg = 0;
  const PlainStem* stem = read_plain_register(at, reg);
  if (stem == nullptr || stem->type != Type::pred || *at != ' ') return false;
  instruction.predicate = reg;
  instruction.predicate_negated = negated;
  cursor_.at = at;
  return true;
}

bool OperandReader::parse_plain_operands(Instruction& instruction, const KnownMnemonic& mnemonic) {
  if (!mnemonic.is_plain) return false;
  const std::size_t first_operand = body_.operands.size();
  const char* at = cursor_.at;
  while (read_plain_operand(at, body_.operands.emplace_back())) {
    if (*at == ',') {
      ++at;
      if (*at == ' ') ++at;
      continue;
    }
    const std::size_t count = body_.operands.size() - first_operand;
    if (*at != ';' || count < mnemonic.fewest_operands || count > mnemonic.max_operands) break;
    cursor_.at = at + 1;
    instruction.mnemonic = mnemonic.number;
    instruction.opcode = mnemonic.opcode;
    instruction.operand_count = static_cast<std::uint16_t>(count);
    instruction.first_operand = static_cast<std::uint32_t>(first_operand);
    return true;
  }
  body_.operands.resize(first_operand);
  return false;
}

bool OperandReader::read_plain_operand(const char*& at, Operand& operand) {
  if (*at == '%') {
    operand.kind = OperandKind::reg;
    return read_plain_register(at, operand.index) != nullptr;
  }
  return *at == '[' ? read_plain_address(at, operand) : read_plain_literal(at, operand);
}

bool OperandReader::read_plain_address(const char*& at, Operand& operand) {
  ++at;
  if (*at != '%' || read_plain_register(at, operand.index) == nullptr) return false;
  operand.kind = OperandKind::address;
  operand.base = Base::reg;
  if (*at == '+') {
    ++at;
    Operand offset;
    if (!read_plain_literal(at, offset) || offset.immediate != ImmediateKind::s64) return false;
    operand.has_offset = true;
    operand.value = offset.value;
  }
  if (at[0] != ']' || at[1] == '.') return false;
  ++at;
  return true;
}

bool OperandReader::read_plain_literal(const char*& at, Operand& operand) {
  const bool negative = *at == '-';
  const char* first = negative ? at + 1 : at;
  if (!is_digit(*first)) return false;
  Cursor cursor = cursor_;
  cursor.at = first;
  Constant constant;
  if (read_literal(cursor, constant) != nullptr) return false;
  const char next = *cursor.at;
  if (next != ',' && next != ';' && next != ']') return false;
  if (negative) {
    if (constant.kind == ImmediateKind::f32 || constant.kind == ImmediateKind::f64) return false;
    constant.bits = 0 - constant.bits;
  }
  operand.kind = OperandKind::immediate;
  operand.immediate = constant.kind;
  operand.value = constant.bits;
  at = cursor.at;
  return true;
}

// `at` stands on the '%', and behind the number afterwards. nullptr when it is not a register with
// a stem of one or two letters and a number of at most six digits, or when something unusual
// follows.
const PlainStem* OperandReader::read_plain_register(const char*& at, std::uint32_t& reg) {
  if (cursor_.end - at <= 9) return nullptr;
  std::uint32_t key = letter_number(at[1]);
  const std::uint32_t second = letter_number(at[2]);
  if (key == 0) return nullptr;
  key |= second << 5U;
  const char* digits = at + (second == 0 ? 2 : 3);
  const std::uint64_t eight = load_bytes(at + 1, 8) >> (second == 0 ? 8U : 16U);
  // What is not a digit has its top bit set; zeros were shifted in at the end.
  const std::uint64_t values = eight ^ 0x3030303030303030ULL;
  const std::uint64_t others = ((values + 0x7676767676767676ULL) | values) & 0x8080808080808080ULL;
  const auto count = static_cast<std::uint32_t>(std::countr_zero(others)) / 8;
  if (count == 0 || !Cursor::is(digits[count], char_after_plain)) return nullptr;
  if (*digits == '0' && count > 1) return nullptr;
  const std::uint32_t number = eight_digits(values << (64 - 8 * count));
  PlainStem& stem = plain_stems_[key];
  if (stem.version != names_.stem_version()) {
    renew(stem, {at, static_cast<std::size_t>(digits - at)});
  }
  if (number >= stem.count) return nullptr;
  reg = stem.first + number;
  at = digits + count;
  return &stem;
}

void OperandReader::renew(PlainStem& stem, std::string_view name) {
  stem = {names_.stem_version(), 0, 0, Type::none};
  const std::uint32_t number = names_.intern(name);
  const Binding& binding = names_.stem(number);
  if (binding.base == Base::none || names_.stem_is_shadowed(number)) return;
  const RegisterRange& range = body_.registers[binding.index];
  stem.first = range.first;
  stem.count = range.count;
  stem.type = range.type;
}

}  // namespace demarc::ptx
