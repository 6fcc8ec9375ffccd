// Every opcode with every type, with modifiers and with operands of every kind, one statement a
// line: what the tables of forms and of operands are compared on, with ptxas where it is and with
// its kept verdicts where it is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace demarc::ptx::test {

struct MatrixForm {
  std::string group;      // "add": opcode and operands
  std::string modifiers;  // "rn ftz", or "-"
  std::string types;      // "f32", "f32,s32"
  std::string statement;  // "add.rn.ftz.f32 %f1, %f2, %f3;"
};

[[nodiscard]] std::vector<MatrixForm> forms_matrix();

// Statements with an operand replaced by operands of every kind: `group` is the statement,
// `modifiers` the operand's number, `types` what stands there.
[[nodiscard]] std::vector<MatrixForm> operand_matrix();
// Those of statements that sm_90 does not have.
[[nodiscard]] std::vector<MatrixForm> operand_matrix_of_sm_100a();

// A module with these statements, the first of which stands on line `first_matrix_line`.
inline constexpr int first_matrix_line = 12;
[[nodiscard]] std::string matrix_module(const std::vector<MatrixForm>& forms,
                                        std::string_view target = "sm_90");

// The forms that are taken, in lines: "add [rn ftz]: f16 f32 f16x2".
[[nodiscard]] std::string taken_forms(const std::vector<MatrixForm>& forms,
                                      const std::vector<bool>& refused);

}  // namespace demarc::ptx::test
