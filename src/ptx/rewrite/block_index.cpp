// Puts registers in the place of %ctaid and %nctaid.
#include "rewrite/block_index.hpp"

#include "rewrite/kernel_text.hpp"

namespace demarc::ptx {

std::string block_index_code(std::string_view number, std::string_view plane,
                             std::string_view rest) {
  return fmt::format(R"(	div.u32 	%demarc_ctaid_z, {0}, {1};
	rem.u32 	{2}, {0}, {1};
	div.u32 	%demarc_ctaid_y, {2}, %demarc_nctaid_x;
	rem.u32 	%demarc_ctaid_x, {2}, %demarc_nctaid_x;
)",
                     number, plane, rest);
}

bool reads_block_index(const Body& body, const Instruction& instruction) {
  for (const Operand& operand : body.operands_of(instruction)) {
    if (operand.kind != OperandKind::special) continue;
    const auto name = info(static_cast<SpecialRegister>(operand.index)).name;
    if (name.find("ctaid") != std::string_view::npos) return true;
    if (name.find("cluster") != std::string_view::npos) return true;
  }
  return false;
}

Result<std::string> with_other_block_index(const Module& module, const Instruction& instruction,
                                           const char* wanted) {
  const std::string_view written = module.text_of(instruction);
  std::string changed(written);
  for (const char axis : {'x', 'y', 'z'}) {
    replace_in(changed, fmt::format("%ctaid.{}", axis), fmt::format("%demarc_ctaid_{}", axis));
    replace_in(changed, fmt::format("%nctaid.{}", axis), fmt::format("%demarc_nctaid_{}", axis));
  }
  if (changed != written) return changed;
  return invalid_input("{}:{}: '{}' cannot be {}; read one axis of %ctaid or %nctaid at a time",
                       module.source_name, instruction.line, written, wanted);
}

Result<void> check_no_clusters(const Module& module, const Function& kernel, const char* why_not) {
  for (const PerformanceDirective& directive : kernel.directives) {
    if (directive.name.find("cluster") == std::string_view::npos) continue;
    return invalid_input("{}:{}: kernel '{}' uses clusters (.{}), which {}", module.source_name,
                         kernel.line, kernel.name, directive.name, why_not);
  }
  return {};
}

Result<void> check_no_block_index(const Module& module, const Function& function,
                                  const char* wanted) {
  for (const Instruction& instruction : function.body.instructions) {
    if (!reads_block_index(function.body, instruction)) continue;
    return invalid_input(
        "{}:{}: '{}' in the device function '{}' cannot be {}; inline the function",
        module.source_name, instruction.line, module.text_of(instruction), function.name, wanted);
  }
  return {};
}

}  // namespace demarc::ptx
