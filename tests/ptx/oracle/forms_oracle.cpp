// Tests by ptxas that the forms of instructions it takes are those that the parser takes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "compilers.hpp"
#include "demarc/ptx/parser.hpp"
#include "forms_matrix.hpp"

namespace demarc::ptx::test {
namespace {

constexpr std::size_t forms_per_module = 400;

struct Verdicts {
  std::vector<bool> refused;
  std::vector<bool> unjudged;  // ptxas ends without naming the statement
};

// Which of the statements ptxas refuses. It names lines, phase after phase, so those are left out
// until it names no more; where it fails without a line, halves are tried.
void judge(const std::vector<MatrixForm>& forms, std::vector<std::size_t> rest, Verdicts& verdicts,
           std::string_view target) {
  while (!rest.empty()) {
    std::vector<MatrixForm> statements;
    for (const std::size_t i : rest) statements.push_back(forms[i]);
    const Judgement judgement = judgement_of_ptxas(matrix_module(statements, target));
    if (judgement.taken) return;
    std::vector<std::size_t> left;
    for (std::size_t k = 0; k < rest.size(); ++k) {
      const bool is_named = judgement.lines.contains(static_cast<int>(k) + first_matrix_line);
      if (is_named) verdicts.refused[rest[k]] = true;
      if (!is_named) left.push_back(rest[k]);
    }
    if (left.size() == rest.size()) {
      if (rest.size() == 1) {
        verdicts.unjudged[rest[0]] = true;
        return;
      }
      const auto middle = rest.begin() + static_cast<std::ptrdiff_t>(rest.size() / 2);
      judge(forms, {rest.begin(), middle}, verdicts, target);
      judge(forms, {middle, rest.end()}, verdicts, target);
      return;
    }
    rest = left;
  }
}

// ptxas 13.0 crashes on st.param to an address in a register, on `_` and on variables where some
// instructions have a register, and has no 32-bit addresses from sm_90 on.
bool may_be_unjudged(const std::string& statement) {
  return statement.find(" _,") != std::string::npos || statement.ends_with("}, gv;") ||
         statement.starts_with("st.param.") ||
         (statement.starts_with("cvta.") && statement.find(".u32") != std::string::npos);
}

// The forms of every `step`th module of the matrix on which ptxas and the parser differ.
std::string differences(const std::vector<MatrixForm>& forms, std::size_t step, std::size_t& judged,
                        std::string_view target = "sm_90") {
  std::string found;
  for (std::size_t first = 0; first < forms.size(); first += step * forms_per_module) {
    const std::size_t end = std::min(forms.size(), first + forms_per_module);
    std::vector<std::size_t> part;
    for (std::size_t i = first; i < end; ++i) part.push_back(i);
    Verdicts verdicts{std::vector<bool>(forms.size(), false),
                      std::vector<bool>(forms.size(), false)};
    judge(forms, part, verdicts, target);
    for (const std::size_t i : part) {
      if (verdicts.unjudged[i]) {
        if (!may_be_unjudged(forms[i].statement)) {
          found += fmt::format("ptxas does not judge {}\n", forms[i].statement);
        }
        continue;
      }
      ++judged;
      const bool taken = parse(matrix_module({forms[i]}, target), "t.ptx").diagnostics.ok();
      if (taken == verdicts.refused[i]) {
        found += fmt::format("{} {}\n", taken ? "only the parser takes" : "only ptxas takes",
                             forms[i].statement);
      }
    }
  }
  return found;
}

TEST(Forms, ptxas_takes_the_forms_that_the_parser_takes) {
  std::size_t judged = 0;
  EXPECT_EQ(differences(forms_matrix(), 4, judged), "");
  EXPECT_GE(judged, 15000U);
}

TEST(WholeForms, ptxas_takes_the_forms_of_the_whole_matrix_that_the_parser_takes) {
  std::size_t judged = 0;
  EXPECT_EQ(differences(forms_matrix(), 1, judged), "");
  EXPECT_GE(judged + 100, forms_matrix().size());
}

TEST(Operands, ptxas_takes_the_operands_that_the_parser_takes) {
  std::size_t judged = 0;
  EXPECT_EQ(differences(operand_matrix(), 1, judged), "");
  EXPECT_GE(judged, 13000U);
}

TEST(Operands, ptxas_takes_the_operands_of_sm_100a_that_the_parser_takes) {
  std::size_t judged = 0;
  EXPECT_EQ(differences(operand_matrix_of_sm_100a(), 1, judged, "sm_100a"), "");
  EXPECT_GE(judged, 350U);
}

}  // namespace
}  // namespace demarc::ptx::test
