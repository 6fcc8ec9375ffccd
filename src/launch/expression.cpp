// Evaluates the integer expressions of launch files, with the precedence of C.
#include "expression.hpp"

#include <bit>
#include <cctype>
#include <cmath>
#include <vector>

#include "demarc/base/numbers.hpp"

namespace demarc::gpu {
namespace {

constexpr int deepest_nesting = 64;

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const Variables& variables, std::string_view where)
      : text_(text), variables_(variables), where_(where) {}

  Result<std::int64_t> whole() {
    DEMARC_TRY(const std::int64_t value, shift());
    skip_blanks();
    if (at_ != text_.size()) return fail("unexpected text");
    return value;
  }

 private:
  [[nodiscard]] tl::unexpected<Error> fail(std::string_view why) const {
    return invalid_input("{}: '{}': {} at column {}", where_, text_, why, at_ + 1);
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Result<std::int64_t> shift() {
    DEMARC_TRY(std::int64_t left, sum());
    while (true) {
      const bool up = take("<<");
      if (!up && !take(">>")) return left;
      DEMARC_TRY(const std::int64_t right, sum());
      if (right < 0 || right > 62) return fail("a shift by 0 to 62 was expected");
      if (up && (left < 0 || left > (INT64_MAX >> right))) return fail("overflow");
      left = up ? left << right : left >> right;
    }
  }

  Result<std::int64_t> sum() {
    DEMARC_TRY(std::int64_t left, product());
    while (true) {
      const bool plus = take("+");
      if (!plus && !take("-")) return left;
      DEMARC_TRY(const std::int64_t right, product());
      const bool overflow = plus ? __builtin_add_overflow(left, right, &left)
                                 : __builtin_sub_overflow(left, right, &left);
      if (overflow) return fail("overflow");
    }
  }

  Result<std::int64_t> product() {
    DEMARC_TRY(std::int64_t left, unary());
    while (true) {
      skip_blanks();
      const char symbol = at_ < text_.size() ? text_[at_] : '\0';
      if (symbol != '*' && symbol != '/' && symbol != '%') return left;
      ++at_;
      DEMARC_TRY(const std::int64_t right, unary());
      if (symbol == '*') {
        if (__builtin_mul_overflow(left, right, &left)) return fail("overflow");
        continue;
      }
      if (right == 0) return fail("division by zero");
      if (right == -1 && left == INT64_MIN) return fail("overflow");
      left = symbol == '/' ? left / right : left % right;
    }
  }

  Result<std::int64_t> unary() {
    if (++depth_ > deepest_nesting) return fail("nested too deeply");
    auto value = unary_inner();
    --depth_;
    return value;
  }

  Result<std::int64_t> unary_inner() {
    if (take("-")) {
      DEMARC_TRY(const std::int64_t value, unary());
      if (value == INT64_MIN) return fail("overflow");
      return -value;
    }
    if (take("(")) {
      DEMARC_TRY(const std::int64_t value, shift());
      if (!take(")")) return fail("')' was expected");
      return value;
    }
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return fail("a number, a parameter or '(' was expected");
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) return parse_i64(word, where_);
    if (take("(")) return call(word);
    const auto it = variables_.find(std::string(word));
    if (it != variables_.end()) return it->second;
    std::string known;
    for (const auto& [name, value] : variables_) known += (known.empty() ? "" : ", ") + name;
    return invalid_input("{}: '{}': there is no parameter '{}'; known are: {}", where_, text_, word,
                         known);
  }

  Result<std::int64_t> call(std::string_view name) {
    std::vector<std::int64_t> arguments;
    do {
      DEMARC_TRY(const std::int64_t value, shift());
      arguments.push_back(value);
    } while (take(","));
    if (!take(")")) return fail("')' was expected");
    if (arguments.size() == 1 && name == "log2" && arguments[0] > 0) {
      return std::bit_width(static_cast<std::uint64_t>(arguments[0])) - 1;
    }
    if (arguments.size() == 1 && name == "sqrt" && arguments[0] >= 0) {
      return static_cast<std::int64_t>(std::floor(std::sqrt(static_cast<double>(arguments[0]))));
    }
    if (arguments.size() == 2) return call_with_two(name, arguments[0], arguments[1]);
    return fail("no function of that name takes these arguments");
  }

  Result<std::int64_t> call_with_two(std::string_view name, std::int64_t left, std::int64_t right) {
    if (name == "min") return left < right ? left : right;
    if (name == "max") return left < right ? right : left;
    constexpr std::int64_t large = std::int64_t{1} << 61;
    const bool divides = left >= 0 && right > 0 && left < large && right < large;
    if (name == "ceil_div" && divides) return (left + right - 1) / right;
    if (name == "round_up" && divides) return (left + right - 1) / right * right;
    return fail("no function of that name takes these arguments");
  }

  std::string_view text_;
  const Variables& variables_;
  std::string_view where_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<std::int64_t> evaluate(std::string_view text, const Variables& variables,
                              std::string_view where) {
  return ExpressionParser(text, variables, where).whole();
}

}  // namespace demarc::gpu
