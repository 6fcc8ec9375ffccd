// Numbers that rewritten code computes with. They stand in its text, or in the constant variable of
// the module; there a function loads them where it begins. ptxas then takes them from constant
// memory in the instructions that use them, and its other passes see no loads in the accesses.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "demarc/ptx/colored.hpp"

namespace demarc::ptx {

template <class Constants>
class ConstantOperands {
 public:
  // `at`: where they begin in the variable.
  ConstantOperands(std::optional<Constants> known, std::size_t at) : known_(known), at_(at) {}

  [[nodiscard]] const std::optional<Constants>& known() const { return known_; }

  template <class Number>
  [[nodiscard]] std::string operand(Number Constants::*member) const {
    if (known_) return fmt::format("{}", *known_.*member);
    return fmt::format("%demarc_c{}", offset(member));
  }

  // What makes these operands of a function's instructions, at the beginning of its body.
  template <class... Numbers>
  [[nodiscard]] std::string loads(Numbers Constants::*... members) const {
    if (known_) return {};
    return (load(offset(members), 8 * sizeof(Numbers)) + ...);
  }

 private:
  template <class Number>
  [[nodiscard]] std::size_t offset(Number Constants::*member) const {
    static const Constants origin;
    const auto in_constants =
        reinterpret_cast<const char*>(&(origin.*member)) - reinterpret_cast<const char*>(&origin);
    return at_ + static_cast<std::size_t>(in_constants);
  }
  static std::string load(std::size_t offset, std::size_t bits) {
    return fmt::format("\n\t.reg .b{0} %demarc_c{1};\n\tld.const.u{0} \t%demarc_c{1}, [{2}+{1}];",
                       bits, offset, colored_constants_name);
  }

  std::optional<Constants> known_;
  std::size_t at_;
};

using PlaceOperands = ConstantOperands<ColoredPlaces>;

}  // namespace demarc::ptx
