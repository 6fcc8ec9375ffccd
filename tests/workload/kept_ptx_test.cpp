// The PTX kept in kernels/ptx is what nvcc makes of the sources, and every embedded module is
// accepted by ptxas.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/workload/load.hpp"
#include "demarc/workload/workload.hpp"
#include "not_run.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::workload {
namespace {

// Without comments: the banner of the compiler is one.
std::string code_of(const std::string& ptx) {
  return std::regex_replace(ptx, std::regex("//[^\n]*"), "");
}

std::string release_of(const std::string& ptx) {
  std::smatch release;
  return std::regex_search(ptx, release, std::regex("release [^\n]*")) ? release.str() : "";
}

// Lines "<made by this build>=<kept in the tree>"; the file exists where nvcc compiled.
std::vector<std::pair<std::string, std::string>> kept_pairs() {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto list = read_file(test::build_dir() / "kept_ptx.txt");
  std::istringstream lines(list.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals != std::string::npos)
      pairs.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return pairs;
}

TEST(KeptPtx, every_source_has_a_kept_module) {
  for (const auto& file : std::filesystem::directory_iterator(test::source_dir() / "kernels")) {
    if (file.path().extension() != ".cu") continue;
    const auto kept = test::source_dir() / "kernels/ptx" / file.path().stem().concat(".ptx");
    EXPECT_TRUE(std::filesystem::exists(kept)) << kept << ": run `ninja demarc_update_ptx`";
  }
}

TEST(KeptPtx, equals_what_nvcc_makes_of_the_sources) {
  const auto pairs = kept_pairs();
  if (pairs.empty() && !test::program_exists("nvcc")) DEMARC_NOT_RUN("no nvcc");
  ASSERT_FALSE(pairs.empty()) << "kept_ptx.txt is missing or empty in the build tree";
  std::size_t compared = 0;
  for (const auto& [made_path, kept_path] : pairs) {
    const auto made = read_file(made_path);
    if (!made) continue;  // of a target that this test program does not need
    ++compared;
    const auto kept = read_file(kept_path);
    ASSERT_TRUE(kept) << kept.error().message << ": run `ninja demarc_update_ptx`";
    // Another release of nvcc may choose other registers; the entries must be there all the same.
    if (release_of(*made) == release_of(*kept)) {
      EXPECT_EQ(code_of(*made), code_of(*kept)) << kept_path << ": run `ninja demarc_update_ptx`";
    } else {
      EXPECT_EQ(entry_names(*made), entry_names(*kept))
          << kept_path << ": run `ninja demarc_update_ptx`";
    }
  }
  EXPECT_GT(compared, 0U) << "none of the modules that nvcc makes is in the build tree";
}

class EmbeddedPtx : public ::testing::TestWithParam<std::string> {};

TEST_P(EmbeddedPtx, is_accepted_by_ptxas_for_every_target) {
  if (!test::program_exists("ptxas")) DEMARC_NOT_RUN("no ptxas");
  const auto folder = test::fresh_folder("ptxas_" + GetParam());
  gpu::Launch launch;
  launch.ptx = "bundled:" + GetParam();
  for (const std::uint32_t target : targets_of(GetParam())) {
    const auto ptx = ptx_text(launch, target);
    ASSERT_TRUE(ptx) << ptx.error().message;
    const auto file = folder / "module.ptx";
    ASSERT_TRUE(write_file(file, *ptx));
    const auto outcome =
        test::run_program({"ptxas", fmt::format("-arch=sm_{}", target), file.string(), "-o",
                           (folder / "module.cubin").string()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
}

std::vector<std::string> bundled_modules() {
  std::vector<std::string> names;
  for (const Workload& workload : all()) {
    const auto launch = instance(workload.name);
    if (!launch) continue;
    const std::string name = launch->ptx.substr(launch->ptx.find(':') + 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Workload, EmbeddedPtx, ::testing::ValuesIn(bundled_modules()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace demarc::workload
