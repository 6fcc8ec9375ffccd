// How a tensor core of Hopper sums products, number by number, as docs/emulate.md says it.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "instructions/reference.hpp"

namespace demarc::emulate::test {

struct TensorSum {
  std::string a, b, sum;  // types
  std::vector<double> x;  // numbers of a along k
  std::vector<double> y;  // and of b
  double c = 0;

  // The value of d, for a product by mma.
  [[nodiscard]] double value() const {
    if (a != "e4m3" && a != "e5m2") return block(all(), a, b, c);
    double part = 0;
    for (const std::size_t first : {0U, 2U}) {
      std::vector<std::size_t> half;
      for (std::size_t k = 0; k < x.size(); ++k) {
        if (k % 4 / 2 * 2 == first) half.push_back(k);
      }
      part = block(half, "f16", "f16", part);
    }
    return rounded(part + c);
  }

 private:
  static int exponent(double value, const std::string& type) {
    const int least = type == "f16" || type == "e5m2" ? -14 : type == "e4m3" ? -6 : -126;
    return std::max(std::ilogb(value), least);
  }
  [[nodiscard]] std::vector<std::size_t> all() const {
    std::vector<std::size_t> places(x.size());
    for (std::size_t k = 0; k < places.size(); ++k) places[k] = k;
    return places;
  }
  // To the nearest of f16; to f32 it is exact or a single rounding.
  [[nodiscard]] double rounded(double value) const {
    if (!std::isfinite(value)) return value;
    if (sum == "f32") return static_cast<double>(static_cast<float>(value));
    return value == 0 ? 0 : narrow_f16().value(narrow_f16().round(value));
  }
  [[nodiscard]] double block(const std::vector<std::size_t>& places, const std::string& of_a,
                             const std::string& of_b, double before) const {
    constexpr int kept = 25;  // bits below the largest exponent
    double plain = before;
    int largest = before == 0 ? -10000 : exponent(before, sum);
    for (const std::size_t k : places) {
      plain += x[k] * y[k];
      if (x[k] == 0 || y[k] == 0) continue;
      largest = std::max(largest, exponent(x[k], of_a) + exponent(y[k], of_b));
    }
    if (!std::isfinite(plain)) return plain;
    if (largest == -10000) return 0;
    const auto cut = [&](double value) { return std::trunc(std::ldexp(value, kept - largest)); };
    double total = cut(before);
    for (const std::size_t k : places) total += cut(x[k] * y[k]);
    total = std::ldexp(total, largest - kept);
    if (total == 0) return 0;
    if (sum == "f16") {
      const double made = rounded(total);
      return made == 0 ? 0 : made;
    }
    const int last = std::max(std::ilogb(total), -126) - 23;
    const double made = std::ldexp(std::trunc(std::ldexp(total, -last)), last);
    if (made == 0) return 0;
    return std::abs(made) < 0x1p128 ? made : std::copysign(HUGE_VAL, made);
  }
};

}  // namespace demarc::emulate::test
