// PTX for the registers of a matrix: their declaration, their list, and how memory gives and takes
// them.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace demarc::emulate::test {

// The registers of one matrix, named by its letter. Register r of thread t lies at word
// r * threads + t of what is loaded and stored. The kernel has %thread, and %at for addresses.
struct MatrixRegisters {
  char letter;
  std::string type;
  std::size_t bytes;  // bytes of the matrix
  unsigned threads;

  [[nodiscard]] unsigned width() const { return type == "f64" ? 8 : 4; }
  [[nodiscard]] std::size_t count() const { return bytes / width() / threads; }
  [[nodiscard]] std::string declaration() const {
    const std::string kind = type == "f64" ? "f64" : type == "f32" ? "f32" : "b32";
    return fmt::format(".reg .{} %{}<{}>;\n", kind, letter, count());
  }
  [[nodiscard]] std::string list() const {
    std::string text = "{";
    for (std::size_t r = 0; r < count(); ++r)
      text += fmt::format("{}%{}{}", r == 0 ? "" : ", ", letter, r);
    return text + "}";
  }
  // `what`: "ld" or "st", from or to the address in `base`, from byte `first` on.
  [[nodiscard]] std::string moves(const std::string& what, const std::string& base,
                                  std::size_t first) const {
    std::string text = fmt::format("mad.wide.u32 %at, %thread, {}, {};\n", width(), base);
    for (std::size_t r = 0; r < count(); ++r) {
      const std::string place = fmt::format("[%at+{}]", first + r * width() * threads);
      const std::string reg = fmt::format("%{}{}", letter, r);
      text += fmt::format("{}.global.b{} {}, {};\n", what, 8 * width(), what == "ld" ? reg : place,
                          what == "ld" ? place : reg);
    }
    return text;
  }
};

}  // namespace demarc::emulate::test
