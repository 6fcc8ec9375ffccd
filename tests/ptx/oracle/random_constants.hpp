// Random constant expressions of PTX, and statements that use them.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace demarc::ptx::test {

class RandomConstants {
 public:
  explicit RandomConstants(std::uint64_t seed) : random_(seed) {}

  // Integers, with comparisons of floating-point numbers among them.
  std::string integer(unsigned depth);
  std::string floating(unsigned depth);
  // A statement of the kernel of `constants_module()` on a line of its own.
  std::string statement();
  // An initialiser of a variable of that type: "u32", "b64", "f32" ...
  std::string initialiser(const std::string& type);
  // An expression in which something is wrong: operands of two kinds, division by zero, signs that
  // floating-point numbers do not take.
  std::string mistake();

  std::uint64_t below(std::uint64_t end) { return random_() % end; }

 private:
  template <std::size_t n>
  std::string one_of(const char* const (&words)[n]) {
    return words[below(n)];
  }
  std::string integer_literal();
  std::string floating_literal();

  std::mt19937_64 random_;
};

// A module whose one kernel has these statements.
[[nodiscard]] std::string constants_module(const std::string& variables,
                                           const std::string& statements);

}  // namespace demarc::ptx::test
