// Fragments of matrix products in a buffer, as the figures of the manual place their elements.
#pragma once

#include <array>

#include "harness.hpp"
#include "instructions/matrix_registers.hpp"
#include "instructions/reference.hpp"

namespace demarc::emulate::matrices {

using test::narrow_bf16;
using test::narrow_e4m3;
using test::narrow_e5m2;
using test::narrow_f16;

// Each register of each fragment is one 32-bit (f64: 64-bit) word in the buffer: word r of lane l
// of a fragment stands at (r * 32 + l). Fragments follow each other: a, b, c, d.
struct Shape {
  std::string mnemonic;
  unsigned m, n, k;
  std::string a, b, c, d;  // types
};

inline unsigned bits_of(const std::string& type) {
  if (type == "f16" || type == "bf16") return 16;
  if (type == "s8" || type == "u8" || type == "e4m3" || type == "e5m2") return 8;
  if (type == "s4" || type == "u4") return 4;
  if (type == "b1") return 1;
  return type == "f64" ? 64 : 32;
}

inline double number_of(std::uint64_t bits, const std::string& type) {
  if (type == "f16") return narrow_f16().value(bits & 0xffff);
  if (type == "bf16") return narrow_bf16().value(bits & 0xffff);
  if (type == "e4m3") return narrow_e4m3().value(bits & 0xff);
  if (type == "e5m2") return narrow_e5m2().value(bits & 0xff);
  if (type == "f32") return static_cast<double>(test::f32_of(bits));
  if (type == "tf32") return static_cast<double>(test::f32_of(bits & 0xffffe000U));
  if (type == "f64") return test::f64_of(bits);
  if (type == "s32") return static_cast<double>(static_cast<std::int32_t>(bits));
  const unsigned width = bits_of(type);
  const auto low = static_cast<double>(bits & ((1U << width) - 1));
  return type[0] == 's' && ((bits >> (width - 1)) & 1U) != 0
             ? low - static_cast<double>(1U << width)
             : low;
}

inline unsigned register_count(unsigned elements, const std::string& type) {
  return type == "f64" ? elements : elements * bits_of(type) / 32;
}

struct Place {
  unsigned row, column;
};
// The figures of the manual (9.7.14.5): thread groups of four, `together` elements a register.
inline Place place_a(const Shape& s, unsigned lane, unsigned i) {
  const unsigned together = std::max(32 / bits_of(s.a), 1U);
  const unsigned part = i / together;
  const unsigned column = lane % 4 * together + i % together;
  if (s.m == 8) return {lane / 4, column};
  return {lane / 4 + (part & 1U) * 8, column + part / 2 * 4 * together};
}
inline Place place_b(const Shape& s, unsigned lane, unsigned i) {
  const unsigned together = std::max(32 / bits_of(s.b), 1U);
  return {lane % 4 * together + i % together + i / together * 4 * together, lane / 4};
}
inline Place place_c(const Shape&, unsigned lane, unsigned i) {
  return {lane / 4 + i / 2 * 8, lane % 4 * 2 + (i & 1U)};
}

class Fragment {
 public:
  Fragment(std::string type, unsigned elements)
      : type_(std::move(type)), elements_(elements), registers_(register_count(elements, type_)) {}
  [[nodiscard]] unsigned word_bytes() const { return type_ == "f64" ? 8 : 4; }
  [[nodiscard]] std::size_t bytes() const { return std::size_t{registers_} * 32 * word_bytes(); }
  [[nodiscard]] std::uint64_t get(const std::byte* base, unsigned lane, unsigned i) const {
    const unsigned width = bits_of(type_);
    const unsigned together = std::max(32 / width, 1U);
    std::uint64_t word = 0;
    std::memcpy(&word, base + ((i / together) * 32 + lane) * word_bytes(), word_bytes());
    return width >= 32 ? word : (word >> (i % together * width)) & ((1U << width) - 1);
  }
  void set(std::byte* base, unsigned lane, unsigned i, std::uint64_t bits) const {
    const unsigned width = bits_of(type_);
    const unsigned together = std::max(32 / width, 1U);
    std::byte* at = base + ((i / together) * 32 + lane) * word_bytes();
    std::uint64_t word = 0;
    std::memcpy(&word, at, word_bytes());
    word |= bits << (width >= 32 ? 0 : i % together * width);
    std::memcpy(at, &word, word_bytes());
  }
  [[nodiscard]] unsigned elements() const { return elements_; }
  [[nodiscard]] test::MatrixRegisters words(char letter) const {
    return {letter, type_, bytes(), 32};
  }

 private:
  std::string type_;
  unsigned elements_;
  unsigned registers_;
};

// The fragments of a product, one behind the other.
struct Fragments {
  Fragment a, b, c, d;

  explicit Fragments(const Shape& s)
      : a(s.a, s.m * s.k / 32),
        b(s.b, s.k * s.n / 32),
        c(s.c, s.m * s.n / 32),
        d(s.d, s.m * s.n / 32) {}
  [[nodiscard]] std::size_t at_b() const { return a.bytes(); }
  [[nodiscard]] std::size_t at_c() const { return at_b() + b.bytes(); }
  [[nodiscard]] std::size_t at_d() const { return at_c() + c.bytes(); }
  [[nodiscard]] std::size_t bytes() const { return at_d() + d.bytes(); }

  // `before`: what makes d and c before the product, whose predicate is `guard`.
  [[nodiscard]] std::string text(const Shape& s, const std::string& before = "",
                                 const std::string& guard = "") const {
    const auto [in_a, in_b, in_c, in_d] =
        std::array{a.words('a'), b.words('b'), c.words('c'), d.words('d')};
    return ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 "
           "out)\n{\n.reg .b32 %thread;\n.reg .pred %p;\n.reg .b64 %base, %at;\n" +
           in_a.declaration() + in_b.declaration() + in_c.declaration() + in_d.declaration() +
           "ld.param.u64 %base, [out];\nmov.u32 %thread, %tid.x;\n" + in_a.moves("ld", "%base", 0) +
           in_b.moves("ld", "%base", at_b()) + in_c.moves("ld", "%base", at_c()) + before + guard +
           s.mnemonic + " " + in_d.list() + ", " + in_a.list() + ", " + in_b.list() + ", " +
           in_c.list() + ";\n" + in_d.moves("st", "%base", at_d()) + "ret;\n}\n";
  }
};

}  // namespace demarc::emulate::matrices
