// What ptxas refuses of declarations: each rule says why, and nothing where it takes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

enum class DeclaredIn : std::uint8_t { module, body, kernel_parameters, function_parameters };

[[nodiscard]] std::string why_no_name(std::string_view name);
// Whatever their name is: a parameter of a prototype is called `_`.
[[nodiscard]] std::string why_no_registers(const RegisterRange& range);
[[nodiscard]] std::string why_no_variable(const Variable& variable, DeclaredIn place);
// A variable of the module that was declared before, in another way.
[[nodiscard]] std::string why_not_again(const Variable& old, const Variable& variable);
// Directives in the header of a function, in order; all of them.
[[nodiscard]] std::string why_no_header(const Function& function);
[[nodiscard]] bool is_header_directive(std::string_view word);
[[nodiscard]] bool takes_values(std::string_view word);
// `version` is times ten. Newer versions than the tables know are not judged, nor are their
// targets.
[[nodiscard]] std::string why_no_version(Version version);
[[nodiscard]] std::string why_no_target(std::string_view target, std::uint32_t version);

}  // namespace demarc::ptx
