// The PTX kept in the tree is what nvcc makes of the sources, and every embedded module is accepted
// by ptxas.
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

// Without comments, of which the banner of the compiler is one, without the line that names the
// target, and without the number of a source's own variables, which follows from its path.
std::string code_of(const std::string& ptx) {
  const std::regex left_out("//[^\n]*\n?|\n\\.target sm_[0-9]+|_INTERNAL_[0-9a-f]{8}");
  return std::regex_replace(ptx, left_out, "");
}

// What nvcc made for another target than sm_75.
std::string made_for(const std::string& target, const std::string& file) {
  return read_file(std::regex_replace(file, std::regex("\\.sm_75\\."), ".sm_" + target + "."))
      .value_or("");
}

std::string release_of(const std::string& ptx) {
  std::smatch release;
  return std::regex_search(ptx, release, std::regex("release [^\n]*")) ? release.str() : "";
}

struct KeptModule {
  std::string made;  // by nvcc, in this build; empty where another compiler is used
  std::string kept;
  std::string mark;  // the last line of what was made of the sources as they are
};

// Lines "<made>=<kept>=<mark>".
std::vector<KeptModule> kept_modules() {
  std::vector<KeptModule> modules;
  const auto list = read_file(test::build_dir() / "kept_ptx.txt");
  std::istringstream lines(list.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, std::regex("([^=]*)=([^=]+)=([^=]+)")))
      modules.push_back({parts.str(1), parts.str(2), parts.str(3)});
  }
  return modules;
}

TEST(KeptPtx, every_source_has_a_kept_module) {
  for (const auto& file : std::filesystem::directory_iterator(test::source_dir() / "kernels")) {
    if (file.path().extension() != ".cu") continue;
    const auto kept = test::source_dir() / "kernels/ptx" / file.path().stem().concat(".ptx");
    EXPECT_TRUE(std::filesystem::exists(kept)) << kept << ": run `ninja demarc_update_ptx`";
  }
}

TEST(KeptPtx, was_made_of_the_sources_as_they_are) {
  const auto modules = kept_modules();
  ASSERT_FALSE(modules.empty()) << "kept_ptx.txt is missing or empty in the build tree";
  for (const KeptModule& module : modules) {
    const auto text = read_file(module.kept);
    ASSERT_TRUE(text) << text.error().message << ": run `ninja demarc_update_ptx`";
    EXPECT_TRUE(text->ends_with("\n" + module.mark + "\n"))
        << module.kept << ": run `ninja demarc_update_ptx`";
  }
}

TEST(KeptPtx, equals_what_nvcc_makes_of_the_sources) {
  if (!test::program_exists("nvcc")) DEMARC_NOT_RUN("no nvcc");
  std::size_t compared = 0;
  for (const KeptModule& module : kept_modules()) {
    const auto made = read_file(module.made);
    if (!made) continue;  // of a target that this test program does not need
    ++compared;
    const auto kept = read_file(module.kept);
    ASSERT_TRUE(kept) << kept.error().message << ": run `ninja demarc_update_ptx`";
    // Another release of nvcc may choose other registers; the entries must be there all the same.
    if (release_of(*made) == release_of(*kept)) {
      EXPECT_EQ(code_of(*made), code_of(*kept)) << module.kept << ": run `ninja demarc_update_ptx`";
      // So a build that takes what is kept loses nothing there.
      EXPECT_EQ(code_of(made_for("80", module.made)), code_of(*kept)) << module.kept;
      EXPECT_EQ(code_of(made_for("90", module.made)), code_of(*kept)) << module.kept;
    } else {
      EXPECT_EQ(entry_names(*made), entry_names(*kept))
          << module.kept << ": run `ninja demarc_update_ptx`";
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
