// demarc ptx, as a user calls it.
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program.hpp"
#include "ptx/text.hpp"

namespace demarc::ptx {
namespace {

std::string file_with(const std::string& text) {
  const auto path = demarc::test::fresh_folder("ptx_verb") / "k.ptx";
  EXPECT_TRUE(write_file(path, text));
  return path.string();
}

TEST(PtxVerb, a_good_module_passes_the_check) {
  const auto file = file_with(test::kernel("exit;"));
  const auto outcome = demarc::test::run_demarc({"ptx", file});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, file + ": 0 malformed, 0 unsupported, 1 function\n");
}

TEST(PtxVerb, a_malformed_module_exits_with_1_and_every_error) {
  const auto file = file_with(test::kernel("add.s32 %r1;\nbra L;"));
  const auto outcome = demarc::test::run_demarc({"ptx", file, "--check"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find(file + ":11:1: malformed: 'add.s32' takes 3 operands"),
            std::string::npos);
  EXPECT_NE(outcome.out.find(file + ":12:5: malformed: 'L' is not declared"), std::string::npos);
  EXPECT_EQ(outcome.err, "demarc ptx: " + file + ": 2 errors\n");
  ASSERT_TRUE(write_file(file, test::kernel("bra L;")));
  EXPECT_EQ(demarc::test::run_demarc({"ptx", file}).err, "demarc ptx: " + file + ": 1 error\n");
}

TEST(PtxVerb, the_graph_of_a_kernel_that_is_not_there_lists_those_that_are) {
  const auto outcome =
      demarc::test::run_demarc({"ptx", file_with(test::kernel("exit;")), "--cfg", "nobody"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("no kernel or function 'nobody'; there is: k"), std::string::npos);
}

TEST(PtxVerb, print_stats_cfg_and_tree_give_their_forms) {
  const auto file = file_with(test::kernel("ld.global.u32 %r1, [%rd1]; exit;"));
  EXPECT_NE(
      demarc::test::run_demarc({"ptx", file, "--print"}).out.find("ld.global.u32 %r1, [%rd1];"),
      std::string::npos);
  EXPECT_NE(demarc::test::run_demarc({"ptx", file, "--stats", "--json"})
                .out.find("\"schema\": \"demarc.ptx.stats/1\""),
            std::string::npos);
  EXPECT_EQ(demarc::test::run_demarc({"ptx", file, "--cfg", "k"}).out.rfind("digraph \"k\"", 0),
            0U);
  EXPECT_NE(demarc::test::run_demarc({"ptx", file, "--tree", "k"})
                .out.find("\"schema\": \"demarc.ptx.tree/1\""),
            std::string::npos);
}

TEST(PtxVerb, two_forms_at_once_are_refused) {
  const auto outcome = demarc::test::run_demarc({"ptx", "x.ptx", "--print", "--stats"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("at most 1"), std::string::npos) << outcome.err;
}

std::string fat_binary(const std::string& name) {
  return (demarc::test::source_dir() / "tests" / "fatbin" / "files" / name).string();
}

TEST(PtxVerb, a_fat_binary_is_listed_and_its_ptx_written_as_files) {
  const auto file = fat_binary("zstd.fatbin");
  const auto list = demarc::test::run_demarc({"ptx", file, "--list"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_NE(list.out.find("PTX           sm_90    zstd"), std::string::npos);
  const auto json = demarc::test::run_demarc({"ptx", file, "--list", "--json"});
  EXPECT_NE(json.out.find("\"schema\": \"demarc.ptx.images/1\""), std::string::npos);
  const auto folder = demarc::test::fresh_folder("ptx_extract");
  const auto written = demarc::test::run_demarc({"ptx", file, "--extract", folder.string()});
  EXPECT_EQ(written.exit_code, 0);
  const std::string path = (folder / "zstd.fatbin.0.2.sm_90.ptx").string();
  EXPECT_EQ(written.out, path + "\n");
  EXPECT_EQ(demarc::test::run_demarc({"ptx", path}).exit_code, 0);
}

TEST(PtxVerb, machine_code_alone_gives_no_ptx_and_exits_with_1) {
  const auto folder = demarc::test::fresh_folder("ptx_extract");
  const auto outcome = demarc::test::run_demarc(
      {"ptx", fat_binary("elf_only.fatbin"), "--extract", folder.string()});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("holds no PTX, only machine code"), std::string::npos);
}

// What every verb that takes PTX says of `file`.
void expect_every_verb_says(const std::string& file, const std::string& words) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"ptx", file, "--print"},
           {"rewrite", file, "--needs"},
           {"emulate", file, "--kernel", "k", "--grid", "1", "--block", "1", "--args", ""},
           {"run", file, "--kernel", "k", "--grid", "1", "--block", "1", "--args", ""},
           {"locality", file, "--kernel", "k", "--grid", "1", "--block", "1", "--args", ""}}) {
    const auto outcome = demarc::test::run_demarc(command);
    EXPECT_EQ(outcome.exit_code, 1) << command[0];
    EXPECT_NE(outcome.err.find(words), std::string::npos) << command[0] << ": " << outcome.err;
  }
}

TEST(PtxVerb, every_verb_says_which_command_takes_the_ptx_out) {
  const auto file = fat_binary("zstd.fatbin");
  expect_every_verb_says(file, "'demarc ptx --extract DIR " + file + "' extracts what it holds");
}

TEST(PtxVerb, every_verb_says_which_command_makes_ptx_of_a_source_and_of_a_cubin) {
  const auto source = demarc::test::source_dir() / "kernels" / "vecadd";
  expect_every_verb_says(source.string() + ".cu", "this is CUDA source, not PTX; 'nvcc -ptx -o " +
                                                      source.string() + ".ptx " + source.string() +
                                                      ".cu' makes PTX from it");
  expect_every_verb_says(fat_binary("counted_90.cubin"),
                         "this is a cubin, which holds machine code and not PTX; 'nvcc -ptx");
}

}  // namespace
}  // namespace demarc::ptx
