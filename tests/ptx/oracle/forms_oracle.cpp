// Tests by ptxas that it refuses and takes the forms that the parser refuses and takes.
#include <gtest/gtest.h>

#include <algorithm>

#include "compilers.hpp"
#include "demarc/ptx/parser.hpp"
#include "forms_matrix.hpp"

namespace demarc::ptx::test {
namespace {

// The forms that each of the two refuses.
std::vector<bool> refused_by_parser(const std::vector<MatrixForm>& forms) {
  ParseOptions options;
  options.most_diagnostics = forms.size();
  std::vector<bool> refused(forms.size(), false);
  for (const Diagnostic& one : parse(matrix_module(forms), "t.ptx", options).diagnostics.list) {
    refused.at(one.line - first_matrix_line) = true;
  }
  return refused;
}

// A fatal error ends ptxas at its line, so what is left is given to it again.
std::vector<bool> refused_by_compiler(const std::vector<MatrixForm>& forms) {
  std::vector<bool> refused(forms.size(), false);
  while (true) {
    std::vector<MatrixForm> left;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < forms.size(); ++i) {
      if (refused[i]) continue;
      left.push_back(forms[i]);
      numbers.push_back(i);
    }
    const auto lines = lines_refused_by_ptxas(matrix_module(left));
    if (lines.empty()) return refused;
    for (const std::uint64_t line : lines) refused[numbers.at(line - first_matrix_line)] = true;
  }
}

TEST(Forms, ptxas_takes_the_matrix_as_the_parser_does) {
  const auto forms = forms_matrix();
  EXPECT_GT(forms.size(), 14'455U);
  std::string differ;
  constexpr std::size_t at_once = 400;
  for (std::size_t i = 0; i < forms.size(); i += at_once) {
    const std::vector<MatrixForm> some(
        forms.begin() + static_cast<std::ptrdiff_t>(i),
        forms.begin() + static_cast<std::ptrdiff_t>(std::min(i + at_once, forms.size())));
    const auto ours = refused_by_parser(some);
    const auto theirs = refused_by_compiler(some);
    for (std::size_t k = 0; k < some.size(); ++k) {
      if (ours[k] != theirs[k]) {
        differ +=
            (theirs[k] ? "refused by ptxas: " : "taken by ptxas: ") + some[k].statement + "\n";
      }
    }
  }
  EXPECT_EQ(differ, "");
}

}  // namespace
}  // namespace demarc::ptx::test
