// demarc rewrite, as a user calls it.
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

std::string vecadd() {
  return (source_dir() / "kernels/ptx/vecadd.ptx").string();
}

std::string refusal(const std::vector<std::string>& arguments) {
  const Outcome outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  return outcome.err;
}

TEST(RewriteVerb, what_it_has_rewritten_parses_and_is_refused_the_next_time) {
  const std::string out = (fresh_folder("rewrite_verb") / "colored.ptx").string();
  const Outcome first = run_demarc(
      {"rewrite", vecadd(), "--affine", "--color-mask", "0xc4000", "--color", "1", "-o", out});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(run_demarc({"ptx", out}).exit_code, 0);
  EXPECT_NE(refusal({"rewrite", out, "--color-mask", "0xc4000"})
                .find("'vecadd' is coloured already ('%demarc_a' tells) and cannot be coloured"),
            std::string::npos);
  EXPECT_NE(refusal({"rewrite", out, "--affine"}).find("cannot be made SM-affine"),
            std::string::npos);
}

TEST(RewriteVerb, a_colour_beyond_the_masks_or_without_masks_is_refused) {
  EXPECT_NE(refusal({"rewrite", vecadd(), "--color-mask", "0xc4000", "--color", "2"})
                .find("there is no colour 2; the colours of 1 mask are 0 to 1"),
            std::string::npos);
  EXPECT_NE(refusal({"rewrite", vecadd(), "--affine", "--color", "1"})
                .find("--color requires --color-mask"),
            std::string::npos);
  EXPECT_NE(refusal({"rewrite", vecadd()}).find("say what to add"), std::string::npos);
}

TEST(RewriteVerb, a_rewriting_that_fails_leaves_the_file_as_it_was) {
  const auto out = fresh_folder("rewrite_verb") / "kept.ptx";
  ASSERT_TRUE(write_file(out, "kept"));
  (void)refusal({"rewrite", vecadd(), "--color-mask", "0xc4000", "--color", "2", "-o", out});
  EXPECT_EQ(read_file(out).value(), "kept");
}

}  // namespace
}  // namespace demarc::test
