// Tests by cuobjdump, the outside oracle, that the same PTX is taken out of a file.
#include "nvcc.hpp"

namespace demarc::fatbin::test {
namespace {

TEST(Cuobjdump, takes_out_the_same_ptx) {
  const Nvcc nvcc("fatbin_oracle_cuobjdump");
  const FileImages file = nvcc.images(
      {"--compress-mode=speed", "-gencode", "arch=compute_80,code=compute_80"}, "program");
  const auto texts = nvcc.extracted(file);
  ASSERT_EQ(texts.size(), 1U);
  const auto dumped =
      demarc::test::run_program({DEMARC_CUOBJDUMP, "-ptx", (nvcc.folder() / "program").string()});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const auto start = dumped.out.find(".version");
  ASSERT_NE(start, std::string::npos) << dumped.out;
  EXPECT_EQ(without_comments(dumped.out.substr(start)), without_comments(texts[0]));
}

}  // namespace
}  // namespace demarc::fatbin::test
