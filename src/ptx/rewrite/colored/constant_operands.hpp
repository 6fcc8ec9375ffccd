// Numbers that rewritten code computes with. They stand in its text, or in the constant variable of
// the module, which machine instructions take as they take numbers.
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

  // `op` with `member` as its last operand. `scratch`: a register of the size of `member`.
  template <class Number>
  [[nodiscard]] std::string with(std::string_view op, Number Constants::*member,
                                 std::string_view scratch) const {
    if (known_) return fmt::format("\t{}, {};\n", op, *known_.*member);
    return fmt::format("\tld.const.u{} \t{}, {};\n\t{}, {};\n", 8 * sizeof(Number), scratch,
                       in_variable(member), op, scratch);
  }

  // `guard` and the instructions that put `member` plus `more` into the register `to`.
  [[nodiscard]] std::string sum(std::string_view guard, std::string_view to,
                                std::uint64_t Constants::*member, std::int64_t more) const {
    if (known_) {
      const auto number = static_cast<std::int64_t>(*known_.*member) + more;
      return fmt::format("{}mov.u64 \t{}, {};", guard, to, number);
    }
    return fmt::format("{0}ld.const.u64 \t{1}, {2};\n\t{0}add.s64 \t{1}, {1}, {3};", guard, to,
                       in_variable(member), more);
  }

 private:
  template <class Member>
  [[nodiscard]] std::string in_variable(Member member) const {
    static const Constants origin;
    const auto offset =
        reinterpret_cast<const char*>(&(origin.*member)) - reinterpret_cast<const char*>(&origin);
    return fmt::format("[{}+{}]", colored_constants_name, at_ + static_cast<std::size_t>(offset));
  }
  std::optional<Constants> known_;
  std::size_t at_;
};

using PlaceOperands = ConstantOperands<ColoredPlaces>;
using RemainderOperands = ConstantOperands<RemainderConstants>;

}  // namespace demarc::ptx
