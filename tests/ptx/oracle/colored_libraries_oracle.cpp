// Most kernels of the CUDA libraries can be coloured.
#include <gtest/gtest.h>

#include "colored_forms.hpp"
#include "compilers.hpp"
#include "demarc/ptx/parser.hpp"
#include "paths.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::ptx::test {
namespace {

TEST(Coloured, nine_in_ten_kernels_of_the_libraries_can_be_coloured) {
  struct Source {
    const char* name;
    std::vector<std::string> flags;
    bool compiled;
    bool counted;
  };
  const auto corpus = demarc::test::source_dir() / "tests" / "ptx" / "corpus";
  Count sum;
  std::string said;
  for (const Source& source : {Source{"cub.cu", {"-arch=compute_90", "-lineinfo"}, false, true},
                               Source{"thrust.cu", {"-arch=compute_75"}, false, true},
                               Source{"curand.cu", {"-arch=compute_100"}, true, true},
                               Source{"features.cu", {"-arch=compute_75"}, true, false}}) {
    const auto module = parse_whole(nvcc_ptx(corpus / source.name, source.flags), source.name);
    ASSERT_TRUE(module) << module.error().message;
    const auto made = color::rewrite_parities(*module, {{0x38a000, 0xc4000}, 1}, with_places);
    ASSERT_TRUE(made) << made.error().message;
    if (source.compiled) {
      EXPECT_NE(machine_code_digest(*made->module.text, {}), "");
    }
    if (!source.counted) continue;
    const Count count = count_accepted(*made, source.name, said);
    sum.accepted += count.accepted;
    sum.all += count.all;
  }
  EXPECT_GT(sum.all, 10U);
  EXPECT_GE(sum.accepted * 10, sum.all * 9) << said;
}

}  // namespace
}  // namespace demarc::ptx::test
