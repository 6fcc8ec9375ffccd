// The outside oracle of the instruction cases: the assembler of the CUDA toolkit takes every one of
// them, so they are PTX and not only what our parser takes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "image_kernels.hpp"
#include "instructions/instruction_case.hpp"
#include "instructions/product_cases.hpp"
#include "paths.hpp"
#include "program.hpp"
#include "random_flow.hpp"

namespace demarc::emulate {
namespace {

constexpr std::size_t kernels_in_a_module = 400;

TEST(Assembler, takes_every_instruction_case) {
  const auto& cases = test::all_cases();
  const auto folder = demarc::test::fresh_folder("ptxas_cases");
  std::size_t module = 0;
  for (std::size_t first = 0; first < cases.size(); first += kernels_in_a_module) {
    std::string text = test::module_header(100);
    for (std::size_t i = first; i < std::min(cases.size(), first + kernels_in_a_module); ++i)
      text += test::kernel_body(cases[i], 0, false, fmt::format("k{}", i));
    const auto path = folder / fmt::format("cases{}.ptx", module++);
    ASSERT_TRUE(write_file(path, text));
    const auto outcome = demarc::test::run_program(
        {DEMARC_PTXAS, "-O0", "-arch=sm_100", "-o", "/dev/null", path.string()});
    EXPECT_EQ(outcome.exit_code, 0) << path << "\n" << (outcome.err + outcome.out).substr(0, 4000);
  }
}

TEST(Assembler, takes_random_kernels_whose_lanes_part) {
  const auto folder = demarc::test::fresh_folder("ptxas_flows");
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto path = folder / "flow.ptx";
    ASSERT_TRUE(write_file(path, test::random_flow(seed).text));
    const auto outcome = demarc::test::run_program(
        {DEMARC_PTXAS, "-O0", "-arch=sm_80", "-o", "/dev/null", path.string()});
    EXPECT_EQ(outcome.exit_code, 0) << seed << "\n" << outcome.err << outcome.out;
  }
}

TEST(Assembler, takes_every_matrix_product) {
  const auto folder = demarc::test::fresh_folder("ptxas_products");
  for (const test::ProductCase& one : test::product_cases()) {
    const auto path = folder / "product.ptx";
    ASSERT_TRUE(write_file(path, one.text));
    const auto outcome = demarc::test::run_program(
        {DEMARC_PTXAS, "-O0", "-arch=sm_90a", "-o", "/dev/null", path.string()});
    EXPECT_EQ(outcome.exit_code, 0) << one.text << outcome.err << outcome.out;
  }
}

TEST(Assembler, takes_every_form_of_textures_and_surfaces) {
  const auto folder = demarc::test::fresh_folder("ptxas_images");
  for (const std::string& text : test::image_forms()) {
    const auto path = folder / "image.ptx";
    ASSERT_TRUE(write_file(path, text));
    const auto outcome = demarc::test::run_program(
        {DEMARC_PTXAS, "-O0", "-arch=sm_90", "-o", "/dev/null", path.string()});
    EXPECT_EQ(outcome.exit_code, 0) << text << outcome.err << outcome.out;
  }
}

}  // namespace
}  // namespace demarc::emulate
