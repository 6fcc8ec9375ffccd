#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

TEST(IsolateVerb, without_a_driver_it_ends_with_2_and_says_what_is_missing) {
  ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so", 1);
  const Outcome outcome = run_demarc({"isolate", "--device", "cuda:0"});
  ::unsetenv("DEMARC_LIBCUDA");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("/no/such/libcuda.so"), std::string::npos) << outcome.err;
}

TEST(IsolateVerb, a_planted_device_gives_table_json_and_page_and_says_it_is_a_model) {
  const auto folder = fresh_folder("isolate_verb");
  const std::string json = (folder / "x.json").string();
  const std::string html = (folder / "x.html").string();
  const Outcome outcome = run_demarc({"isolate", "--device", "planted:h100", "--parts", "4",
                                      "--modes", "mask,mask+color", "--victims", "va,mm",
                                      "--aggressors", "fwt", "--json", json, "--html", html});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("A MODEL ANSWERED"), std::string::npos);
  EXPECT_EQ(Json::parse(read_file(json).value())["plan"]["parts"], 4);
  const std::string page = read_file(html).value();
  EXPECT_NE(page.find("not measurements"), std::string::npos);
  EXPECT_NE(page.find("Use mask+color"), std::string::npos);
}

TEST(IsolateVerb, wrong_options_end_with_1_and_name_the_option) {
  for (const auto& [option, value] :
       {std::pair{"--modes", "masc"}, std::pair{"--parts", "7"}, std::pair{"--device", "gpu0"},
        std::pair{"--victims", "a,,b"}}) {
    const Outcome outcome = run_demarc({"isolate", "--device", "planted:h100", option, value});
    EXPECT_EQ(outcome.exit_code, 1) << option;
    EXPECT_NE(outcome.err.find(option), std::string::npos) << outcome.err;
  }
}

TEST(RewriteVerb, colours_a_bundled_kernel_so_that_it_still_parses) {
  const auto folder = fresh_folder("rewrite_verb");
  const std::string out = (folder / "colored.ptx").string();
  const std::string kernel = (source_dir() / "kernels/ptx/vecadd.ptx").string();
  const Outcome first = run_demarc(
      {"rewrite", kernel, "--affine", "--color-mask", "0xc4000", "--color", "1", "-o", out});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Outcome second = run_demarc({"rewrite", out, "--color-mask", "0xc4000"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(run_demarc({"rewrite", kernel}).exit_code, 1);
}

}  // namespace
}  // namespace demarc::test
