// Reads literals and evaluates constant expressions of PTX.
#include "parse/constant_expression.hpp"

#include <bit>
#include <charconv>
#include <cmath>

namespace demarc::ptx {
namespace {

constexpr int deepest_expression = 128;
constexpr const char* lone_single =
    "a literal 0f stands alone: it cannot have a sign or be part of an expression";

std::int64_t as_signed(const Constant& value) {
  return static_cast<std::int64_t>(value.bits);
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

ConstantError read_hex_float(Cursor& cursor, int digits, ImmediateKind kind, Constant& value) {
  std::uint64_t bits = 0;
  for (int i = 0; i < digits; ++i) {
    const int digit = digit_value(cursor.at[i]);
    if (digit > 15) return "a floating-point literal 0f has 8 hexadecimal digits, 0d has 16";
    bits = bits << 4 | static_cast<std::uint64_t>(digit);
  }
  cursor.at += digits;
  if (Cursor::is(*cursor.at, char_name)) {
    return "a floating-point literal 0f has 8 hexadecimal digits, 0d has 16";
  }
  value = {kind, bits};
  return nullptr;
}

// Numbers that a double cannot hold, or only with fewer digits, are refused as `ptxas` refuses
// them.
ConstantError read_decimal_float(Cursor& cursor, Constant& value) {
  double number = 0;
  const auto result = std::from_chars(cursor.at, cursor.end, number);
  if (result.ec == std::errc::invalid_argument) return "a number was expected";
  const std::string_view text(cursor.at, static_cast<std::size_t>(result.ptr - cursor.at));
  const std::string_view digits = text.substr(0, text.find_first_of("eE"));
  const bool is_zero = digits.find_first_not_of("0.") == std::string_view::npos;
  if (!is_zero && (result.ec != std::errc{} || !std::isnormal(number))) {
    return "a floating-point literal is beyond the range of a double";
  }
  cursor.at = result.ptr;
  if (Cursor::is(*cursor.at, char_name)) return "a number ends here, but letters follow it";
  value = {ImmediateKind::f64, std::bit_cast<std::uint64_t>(is_zero ? 0.0 : number)};
  return nullptr;
}

// Digits wrap around at 64 bits; `ptxas` refuses a literal only if a digit follows a number whose
// top bit is set.
ConstantError read_integer(Cursor& cursor, std::uint64_t base, Constant& value) {
  const char* first = cursor.at;
  std::uint64_t bits = 0;
  for (;; ++cursor.at) {
    const auto digit = static_cast<std::uint64_t>(digit_value(*cursor.at));
    if (digit >= base) break;
    if (static_cast<std::int64_t>(bits) < 0) return "an integer literal does not fit into 64 bits";
    bits = bits * base + digit;
  }
  if (cursor.at == first) return "digits were expected";
  bool is_unsigned = static_cast<std::int64_t>(bits) < 0;
  if (*cursor.at == 'U') {
    is_unsigned = true;
    ++cursor.at;
  }
  if (Cursor::is(*cursor.at, char_name)) return "a number ends here, but letters follow it";
  value = {is_unsigned ? ImmediateKind::u64 : ImmediateKind::s64, bits};
  return nullptr;
}

// Precedence climbing over the binary operators of C; larger binds tighter.
struct BinaryOperator {
  const char* text;
  int precedence;
};
constexpr BinaryOperator binary_operators[] = {
    {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<<", 8}, {">>", 8},
    {"<=", 7}, {">=", 7}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
    {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
constexpr int tightest = 10;

const BinaryOperator* peek_operator(const Cursor& cursor) {
  constexpr std::string_view begins_operator = "|&=!<>^+-*/%";
  if (begins_operator.find(cursor.peek()) == std::string_view::npos) return nullptr;
  for (const BinaryOperator& row : binary_operators) {
    const std::size_t length = row.text[1] == '\0' ? 1 : 2;
    if (static_cast<std::size_t>(cursor.end - cursor.at) >= length &&
        std::memcmp(cursor.at, row.text, length) == 0) {
      return &row;
    }
  }
  return nullptr;
}

// The remainder is that of unsigned numbers, whatever its operands are: so computes `ptxas`.
ConstantError divide(char operation, Constant& left, const Constant& right, bool is_unsigned) {
  if (right.bits == 0) return "division by zero in a constant expression";
  if (operation == '%') {
    left.bits %= right.bits;
  } else if (is_unsigned) {
    left.bits /= right.bits;
  } else if (as_signed(right) == -1) {
    if (left.bits == 1ULL << 63U) return "a quotient of signed numbers does not fit into 64 bits";
    left.bits = 0 - left.bits;
  } else {
    left.bits = static_cast<std::uint64_t>(as_signed(left) / as_signed(right));
  }
  return nullptr;
}

template <class Number>
bool holds(std::string_view operation, Number left, Number right) {
  if (operation == "==") return left == right;
  if (operation == "!=") return left != right;
  if (operation == "<") return left < right;
  if (operation == ">") return left > right;
  if (operation == "<=") return left <= right;
  return left >= right;
}

bool is_comparison(std::string_view operation) {
  return operation == "==" || operation == "!=" || operation == "<=" || operation == ">=" ||
         operation == "<" || operation == ">";
}

ConstantError apply_to_floats(std::string_view operation, Constant& left, const Constant& right) {
  const auto a = std::bit_cast<double>(left.bits);
  const auto b = std::bit_cast<double>(right.bits);
  if (is_comparison(operation)) {
    left = {ImmediateKind::s64, holds(operation, a, b) ? 1ULL : 0ULL};
    return nullptr;
  }
  double result = 0;
  if (operation == "+") {
    result = a + b;
  } else if (operation == "-") {
    result = a - b;
  } else if (operation == "*") {
    result = a * b;
  } else if (operation == "/") {
    if (b == 0) return "division by zero in a constant expression";
    result = a / b;
  } else {
    return "this operator does not take floating-point numbers";
  }
  left.bits = std::bit_cast<std::uint64_t>(result);
  return nullptr;
}

void shift(char direction, Constant& left, const Constant& right) {
  const std::uint64_t amount = right.bits & 63U;
  if (direction == '<') {
    left.bits <<= amount;
  } else if (left.kind == ImmediateKind::u64) {
    left.bits >>= amount;
  } else {
    left.bits = static_cast<std::uint64_t>(as_signed(left) >> amount);
  }
}

ConstantError apply(std::string_view operation, Constant& left, const Constant& right) {
  if (left.kind == ImmediateKind::f32 || right.kind == ImmediateKind::f32) return lone_single;
  if (is_float(left) != is_float(right)) {
    return "an expression cannot mix integers and floating-point numbers";
  }
  if (is_float(left)) return apply_to_floats(operation, left, right);
  if (operation == "<<" || operation == ">>") {
    shift(operation[0], left, right);
    return nullptr;
  }
  const bool is_unsigned = left.kind == ImmediateKind::u64 || right.kind == ImmediateKind::u64;
  const char first = operation[0];
  if (operation == "&&" || operation == "||") {
    const bool both = left.bits != 0 && right.bits != 0;
    const bool either = left.bits != 0 || right.bits != 0;
    left = {ImmediateKind::s64, (first == '&' ? both : either) ? 1ULL : 0ULL};
    return nullptr;
  }
  if (is_comparison(operation)) {
    const bool result = is_unsigned ? holds(operation, left.bits, right.bits)
                                    : holds(operation, as_signed(left), as_signed(right));
    left = {ImmediateKind::s64, result ? 1ULL : 0ULL};
    return nullptr;
  }
  if (first == '/' || first == '%') {
    if (ConstantError error = divide(first, left, right, is_unsigned)) return error;
  }
  if (first == '+') left.bits += right.bits;
  if (first == '-') left.bits -= right.bits;
  if (first == '*') left.bits *= right.bits;
  if (first == '&') left.bits &= right.bits;
  if (first == '|') left.bits |= right.bits;
  if (first == '^') left.bits ^= right.bits;
  left.kind = is_unsigned || first == '%' ? ImmediateKind::u64 : ImmediateKind::s64;
  return nullptr;
}

ConstantError read_binary(Cursor& cursor, int least, int depth, Constant& value);
ConstantError read_ternary(Cursor& cursor, int depth, Constant& value);

ConstantError apply_sign(char sign, Constant& value) {
  if (value.kind == ImmediateKind::f32) return lone_single;
  if (value.kind == ImmediateKind::f64) {
    if (sign == '-') value.bits ^= 1ULL << 63U;
    return sign == '-' || sign == '+' ? nullptr
                                      : "this operator does not take floating-point numbers";
  }
  if (sign == '-') value.bits = 0 - value.bits;
  if (sign == '~') value = {ImmediateKind::u64, ~value.bits};
  if (sign == '!') value = {ImmediateKind::s64, value.bits == 0 ? 1ULL : 0ULL};
  return nullptr;
}

ConstantError read_parenthesised(Cursor& cursor, int depth, Constant& value) {
  ++cursor.at;
  cursor.skip();
  const std::string_view rest(cursor.at, static_cast<std::size_t>(cursor.end - cursor.at));
  const bool to_signed = rest.substr(0, 4) == ".s64";
  if (to_signed || rest.substr(0, 4) == ".u64") {
    cursor.at += 4;
    if (!cursor.take(')')) return "')' was expected after the type of a cast";
    if (ConstantError error = read_binary(cursor, tightest + 1, depth + 1, value)) {
      return error;
    }
    if (is_float(value)) return "a cast does not take floating-point numbers";
    value.kind = to_signed ? ImmediateKind::s64 : ImmediateKind::u64;
    return nullptr;
  }
  if (ConstantError error = read_ternary(cursor, depth + 1, value)) return error;
  return cursor.take(')') ? nullptr : "')' was expected in a constant expression";
}

ConstantError read_unary(Cursor& cursor, int depth, Constant& value) {
  if (depth > deepest_expression) return "a constant expression is nested too deeply";
  cursor.skip();
  const char c = cursor.peek();
  if (c == '-' || c == '+' || c == '~' || c == '!') {
    ++cursor.at;
    if (ConstantError error = read_unary(cursor, depth + 1, value)) return error;
    return apply_sign(c, value);
  }
  if (c == '(') return read_parenthesised(cursor, depth, value);
  return read_number(cursor, value);
}

ConstantError read_binary(Cursor& cursor, int least, int depth, Constant& value) {
  if (ConstantError error = read_unary(cursor, depth, value)) return error;
  while (true) {
    cursor.skip();
    const BinaryOperator* row = peek_operator(cursor);
    if (row == nullptr || row->precedence < least) return nullptr;
    const std::string_view operation(row->text);
    // `ptxas` reads a register's name there.
    if (operation == "%" && Cursor::is(cursor.at[1], char_name)) {
      return "a blank was expected behind '%', because '%' and a name are a register";
    }
    cursor.at += operation.size();
    Constant right;
    if (ConstantError error = read_binary(cursor, row->precedence + 1, depth + 1, right)) {
      return error;
    }
    if (ConstantError error = apply(operation, value, right)) return error;
  }
}

ConstantError read_ternary(Cursor& cursor, int depth, Constant& value) {
  if (ConstantError error = read_binary(cursor, 1, depth, value)) return error;
  if (!cursor.take('?')) return nullptr;
  Constant if_true;
  Constant if_false;
  if (ConstantError error = read_ternary(cursor, depth + 1, if_true)) return error;
  if (!cursor.take(':')) return "':' was expected in a constant expression";
  if (ConstantError error = read_ternary(cursor, depth + 1, if_false)) return error;
  if (is_float(value) || is_float(if_true) || is_float(if_false)) {
    return "'? :' takes integers alone";
  }
  value = value.bits != 0 ? if_true : if_false;
  return nullptr;
}

}  // namespace

ConstantError read_literal(Cursor& cursor, Constant& value) {
  const char c = cursor.peek();
  const bool has_point = c == '.' && Cursor::is(cursor.at[1], char_digit);
  if (!Cursor::is(c, char_digit) && !has_point) return "a number was expected";
  if (c == '0') {
    const char letter = cursor.at[1];
    if (letter == 'f' || letter == 'F') {
      cursor.at += 2;
      return read_hex_float(cursor, 8, ImmediateKind::f32, value);
    }
    if (letter == 'd' || letter == 'D') {
      cursor.at += 2;
      return read_hex_float(cursor, 16, ImmediateKind::f64, value);
    }
    if (letter == 'x' || letter == 'X') {
      cursor.at += 2;
      return read_integer(cursor, 16, value);
    }
    if (letter == 'b' || letter == 'B') {
      cursor.at += 2;
      return read_integer(cursor, 2, value);
    }
  }
  const char* digits = cursor.at;
  while (Cursor::is(*digits, char_digit)) ++digits;
  if (*digits == '.' || *digits == 'e' || *digits == 'E') return read_decimal_float(cursor, value);
  return read_integer(cursor, c == '0' && digits - cursor.at > 1 ? 8 : 10, value);
}

ConstantError read_number(Cursor& cursor, Constant& value) {
  if (!is_warp_size(cursor)) return read_literal(cursor, value);
  cursor.at += warp_size_name.size();
  value = {ImmediateKind::s64, warp_size};
  return nullptr;
}

ConstantError read_constant(Cursor& cursor, Constant& value) {
  return read_ternary(cursor, 0, value);
}

}  // namespace demarc::ptx
