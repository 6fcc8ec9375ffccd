// NVRTC and nvJitLink in programs of a tenant (libdemarc_compilers.so): played, and the real ones
// where they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paths.hpp"
#include "program.hpp"

namespace demarc {
namespace {

std::string ran(const std::vector<std::string>& steps, bool in_front) {
  const auto build = test::build_dir();
  std::vector<std::string> command{"/usr/bin/env"};
  if (in_front) command.push_back("LD_PRELOAD=" + (build / "libdemarc_compilers.so").string());
  command.push_back((build / "demarc_compilers_subject").string());
  command.insert(command.end(), steps.begin(), steps.end());
  const test::Outcome outcome = test::run_program(command);
  return outcome.exit_code == 0 ? outcome.out : outcome.err;
}

constexpr const char* as_they_are =
    "nvrtc: machine code\nnvrtc without PTX: machine code\none text: machine code\n"
    "two texts: machine code\nother input: machine code\na fat binary: machine code\n"
    "a text and a file: machine code\none input: machine code\ntwo inputs: machine code\n"
    "and a text: machine code\none that is not taken: machine code\n"
    "one that gives no PTX: machine code\nwithout the option: machine code\n0 links are left\n";
constexpr const char* as_ptx =
    "nvrtc: PTX\nnvrtc without PTX: machine code\none text: PTX\ntwo texts: machine code\n"
    "other input: machine code\na fat binary: PTX without an end\n"
    "a text and a file: machine code\none input: PTX\ntwo inputs: PTX\nand a text: machine code\n"
    "one that is not taken: machine code\none that gives no PTX: machine code\n"
    "without the option: machine code\n0 links are left\n";

TEST(Compilers, give_ptx_where_machine_code_is_asked) {
  const std::string opened =
      "opened=" + (test::build_dir() / "libdemarc_fake_compilers.so").string();
  EXPECT_EQ(ran({"linked"}, false), as_they_are);
  EXPECT_EQ(ran({opened}, false), as_they_are);
  EXPECT_EQ(ran({"linked"}, true), as_ptx);
  EXPECT_EQ(ran({opened}, true), as_ptx);
  EXPECT_EQ(ran({"next", "none"}, true), "next\nnone\n");
}

// Two compilers in one program, each asked after the other was found.
TEST(Compilers, of_several_versions_keep_apart) {
  const auto first = test::build_dir() / "libdemarc_fake_compilers.so";
  const auto second = test::fresh_folder("compilers") / "libother.so";
  std::filesystem::copy_file(first, second);
  const std::string both = "both=" + first.string() + "=" + second.string();
  EXPECT_EQ(ran({both}, true), "first 1: PTX\nsecond 1: PTX\nfirst 2: PTX\n");
}

TEST(Compilers, lead_programs_that_open_cublas_themselves_to_demarcs) {
  const auto library = test::build_dir() / "libdemarc_fake_compilers.so";
  const std::string theirs = library.filename();
  const auto found = [&](const std::vector<std::string>& in_front) {
    std::string preload;
    for (const auto& name : in_front)
      preload += (preload.empty() ? "" : ":") + (test::build_dir() / name).string();
    return test::run_program({"/usr/bin/env", "LD_PRELOAD=" + preload,
                              (test::build_dir() / "demarc_compilers_subject").string(),
                              "blas=" + library.string()})
        .out;
  };
  const auto said = [](const std::string& ours, const std::string& other) {
    return "cublasCreate_v2: " + ours + "\ncublasStrsm_v2: " + ours +
           "\ncublasGetStatusName: " + other + "\ncublasNone: none\n";
  };
  EXPECT_EQ(found({"libdemarc_compilers.so"}), said(theirs, theirs));
  EXPECT_EQ(found({"libdemarc_compilers.so", "libdemarc_blas.so"}),
            said("libdemarc_blas.so", theirs));
}

#ifdef DEMARC_NVRTC
TEST(Compilers, of_nvidia_give_ptx) {
  const std::vector<std::string> steps{
      std::string("compile=") + DEMARC_NVRTC, std::string("link=") + DEMARC_NVJITLINK,
      std::string("optimise=") + DEMARC_NVRTC + "=" + DEMARC_NVJITLINK};
  EXPECT_EQ(ran(steps, false),
            "compiled: machine code\nlinked: machine code\noptimised: machine code\n");
  EXPECT_EQ(ran(steps, true), "compiled: PTX\nlinked: PTX\noptimised: PTX\n");
}
#endif

}  // namespace
}  // namespace demarc
