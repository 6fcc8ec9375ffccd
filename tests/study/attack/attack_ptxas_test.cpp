// ptxas as an oracle: what the generator writes is PTX, for every operation, pattern and form.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/study/neighbour.hpp"
#include "not_run.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::study {
namespace {

// Many kernels of one operation as one module: ptxas takes longer to start than to compile one.
class Modules {
 public:
  void add(const Neighbour& one) {
    std::istringstream lines(neighbour_ptx(one));
    const std::string entry = "entry " + std::string(neighbour_entry);
    for (std::string line; std::getline(lines, line);) {
      if (const auto at = line.find(entry); at != std::string::npos) {
        inside_ = true;
        line.insert(at + entry.size(), std::to_string(kernels_++));
      }
      if (inside_ || declared_.insert(line).second) text_ += line + "\n";
      if (line == "}") inside_ = false;
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] int kernels() const { return kernels_; }

 private:
  std::string text_;
  std::set<std::string> declared_;  // outside of kernels
  bool inside_ = false;
  int kernels_ = 0;
};

class NeighbourText : public ::testing::TestWithParam<OperationRow> {};

TEST_P(NeighbourText, assembles_in_every_form) {
  const std::string ptxas = DEMARC_PTXAS;
  if (ptxas.empty()) DEMARC_NOT_RUN("no ptxas");
  Modules modules;
  for (const Pattern pattern : GetParam().patterns) {
    for (const std::uint64_t apart : {std::uint64_t{0}, std::uint64_t{1}}) {
      for (const std::uint64_t flying : {std::uint64_t{1}, std::uint64_t{8}}) {
        Neighbour one;
        one.operation = GetParam().operation;
        one.pattern = pattern;
        one.footprint = 4096;
        one.apart = apart;
        one.in_flight = flying;
        one = settled(one);
        if (GetParam().operation == Operation::variable) one.footprint = 256 << 20;
        modules.add(one);
      }
    }
  }
  const auto folder = test::fresh_folder("neighbour_text");
  const std::string file = (folder / "n.ptx").string();
  ASSERT_TRUE(write_file(file, modules.text()));
  const auto outcome =
      test::run_program({ptxas, "-arch=sm_90", "-O1", "-o", (folder / "n.cubin").string(), file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << modules.text();
  EXPECT_GE(modules.kernels(), 4);
}

std::string name_of_row(const ::testing::TestParamInfo<OperationRow>& row) {
  return std::string(row.param.name);
}
INSTANTIATE_TEST_SUITE_P(all, NeighbourText,
                         ::testing::ValuesIn(operations().begin(), operations().end()),
                         name_of_row);

}  // namespace
}  // namespace demarc::study
