// Reads literals and evaluates constant expressions of PTX.
#include "constant_expression.hpp"

#include <bit>
#include <charconv>
#include <limits>

namespace demarc::ptx {
namespace {

constexpr int deepest_expression = 128;

bool is_float(const Constant& value) {
  return value.kind == ImmediateKind::f32 || value.kind == ImmediateKind::f64;
}
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

ConstantError read_decimal_float(Cursor& cursor, Constant& value) {
  double number = 0;
  const auto result = std::from_chars(cursor.at, cursor.end, number);
  if (result.ec == std::errc::result_out_of_range) {
    // Beyond the range of a double: infinity or zero, as its exponent's sign says.
    const std::string_view text(cursor.at, static_cast<std::size_t>(result.ptr - cursor.at));
    const std::size_t exponent = text.find_first_of("eE");
    const bool tiny = exponent != std::string_view::npos && text[exponent + 1] == '-';
    number = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  } else if (result.ec != std::errc{}) {
    return "a number was expected";
  }
  cursor.at = result.ptr;
  if (Cursor::is(*cursor.at, char_name)) return "a number ends here, but letters follow it";
  value = {ImmediateKind::f64, std::bit_cast<std::uint64_t>(number)};
  return nullptr;
}

ConstantError read_integer(Cursor& cursor, std::uint64_t base, Constant& value) {
  const char* first = cursor.at;
  std::uint64_t bits = 0;
  constexpr std::uint64_t never_overflows = std::numeric_limits<std::uint64_t>::max() / 16 - 16;
  for (;; ++cursor.at) {
    const auto digit = static_cast<std::uint64_t>(digit_value(*cursor.at));
    if (digit >= base) break;
    if (bits > never_overflows &&
        bits > (std::numeric_limits<std::uint64_t>::max() - digit) / base) {
      return "an integer literal does not fit into 64 bits";
    }
    bits = bits * base + digit;
  }
  if (cursor.at == first) return "digits were expected";
  bool is_unsigned = bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
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
constexpr int tightest_additive = 10;

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

ConstantError divide(char operation, Constant& left, const Constant& right, bool is_unsigned) {
  if (right.bits == 0) return "division by zero in a constant expression";
  if (is_unsigned) {
    left.bits = operation == '/' ? left.bits / right.bits : left.bits % right.bits;
  } else if (as_signed(right) == -1) {
    left.bits = operation == '/' ? 0 - left.bits : 0;  // INT64_MIN / -1 wraps
  } else {
    const std::int64_t a = as_signed(left);
    const std::int64_t b = as_signed(right);
    left.bits = static_cast<std::uint64_t>(operation == '/' ? a / b : a % b);
  }
  return nullptr;
}

// Whether a < b (strictly) with the signedness of the comparison.
bool is_less(const Constant& a, const Constant& b, bool is_unsigned) {
  return is_unsigned ? a.bits < b.bits : as_signed(a) < as_signed(b);
}

void compare(std::string_view operation, Constant& left, const Constant& right, bool is_unsigned) {
  bool holds = false;
  if (operation == "==") holds = left.bits == right.bits;
  if (operation == "!=") holds = left.bits != right.bits;
  if (operation == "<") holds = is_less(left, right, is_unsigned);
  if (operation == ">") holds = is_less(right, left, is_unsigned);
  if (operation == "<=") holds = !is_less(right, left, is_unsigned);
  if (operation == ">=") holds = !is_less(left, right, is_unsigned);
  if (operation == "&&") holds = left.bits != 0 && right.bits != 0;
  if (operation == "||") holds = left.bits != 0 || right.bits != 0;
  left = {ImmediateKind::s64, holds ? 1ULL : 0ULL};
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
  if (is_float(left) || is_float(right)) {
    return "a floating-point constant cannot be part of an expression";
  }
  if (operation == "<<" || operation == ">>") {
    shift(operation[0], left, right);
    return nullptr;
  }
  const bool is_unsigned = left.kind == ImmediateKind::u64 || right.kind == ImmediateKind::u64;
  const char first = operation[0];
  const bool compares = operation.size() == 2 || first == '<' || first == '>';
  if (compares) {
    compare(operation, left, right, is_unsigned);
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
  left.kind = is_unsigned ? ImmediateKind::u64 : ImmediateKind::s64;
  return nullptr;
}

ConstantError read_binary(Cursor& cursor, int least, int depth, Constant& value);
ConstantError read_ternary(Cursor& cursor, int depth, Constant& value);

ConstantError apply_sign(char sign, Constant& value) {
  if (value.kind == ImmediateKind::f32 && sign == '-') value.bits ^= 1ULL << 31;
  if (value.kind == ImmediateKind::f64 && sign == '-') value.bits ^= 1ULL << 63;
  if (is_float(value)) {
    return sign == '-' || sign == '+' ? nullptr
                                      : "this operator does not take floating-point numbers";
  }
  if (sign == '-') value.bits = 0 - value.bits;
  if (sign == '~') value.bits = ~value.bits;
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
    if (ConstantError error = read_binary(cursor, tightest_additive + 1, depth + 1, value)) {
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
  return read_literal(cursor, value);
}

ConstantError read_binary(Cursor& cursor, int least, int depth, Constant& value) {
  if (ConstantError error = read_unary(cursor, depth, value)) return error;
  while (true) {
    cursor.skip();
    const BinaryOperator* row = peek_operator(cursor);
    if (row == nullptr || row->precedence < least) return nullptr;
    const std::string_view operation(row->text);
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

ConstantError read_constant(Cursor& cursor, Constant& value) {
  return read_ternary(cursor, 0, value);
}

ConstantError read_constant_term(Cursor& cursor, Constant& value) {
  return read_binary(cursor, tightest_additive, 0, value);
}

}  // namespace demarc::ptx
