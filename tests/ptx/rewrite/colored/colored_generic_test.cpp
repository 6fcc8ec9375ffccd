// Addresses of which the text does not say which memory they mean.
#include <gtest/gtest.h>

#include "colored_text.hpp"

namespace demarc::ptx {
namespace {

std::string generic(const std::string& body, const std::string& access = "st.u32 [%rd3], 1;") {
  const ColoredModule made = test::colored(
      test::preamble + ".shared .align 4 .b32 s[4];\n.const .b32 c[4];\n" +
      test::colored_kernel(
          "k", "mov.u64 %rd1, s;\ncvta.shared.u64 %rd2, %rd1;\nld.param.u64 %rd4, [p];\n" + body +
                   access));
  return made.kernels[0].accepted() ? *made.module.text
                                    : describe_refusals(made.kernels[0], "t.ptx");
}

TEST(ColoredGeneric, addresses_are_told_apart_at_run_time_where_the_text_does_not) {
  const std::string either = generic("selp.b64 %rd3, %rd2, %rd4, %p1;\n");
  EXPECT_NE(either.find("isspacep.shared \t%demarc_w, %demarc_g;"), std::string::npos) << either;
  EXPECT_NE(either.find("selp.b64 \t%demarc_a, %demarc_g, %demarc_a, %demarc_w;"),
            std::string::npos);
  EXPECT_EQ(either.find("isspacep.const"), std::string::npos);
  const std::string loaded = generic("ld.global.u64 %rd3, [%rd4];\ncvta.const.u64 %rd5, %rd1;\n");
  EXPECT_NE(loaded.find("isspacep.shared \t%demarc_w"), std::string::npos);
  EXPECT_NE(loaded.find("isspacep.const \t%demarc_v"), std::string::npos);
  EXPECT_NE(loaded.find("or.pred \t%demarc_w, %demarc_w, %demarc_v;"), std::string::npos);
}

TEST(ColoredGeneric, arguments_of_a_kernel_are_not_asked) {
  const std::string argument = generic("add.s64 %rd3, %rd4, 4;\n");
  EXPECT_EQ(argument.find("isspacep"), std::string::npos);
  EXPECT_NE(argument.find("st.cs.u32 [%demarc_a], 1;"), std::string::npos);
}

TEST(ColoredGeneric, what_is_shared_for_certain_names_the_space) {
  const std::string shared = generic("add.s64 %rd3, %rd2, 4;\n");
  EXPECT_EQ(shared.find("isspacep"), std::string::npos);
  EXPECT_NE(
      shared.find("cvta.to.shared.u64 \t%demarc_a, %demarc_a;\n\tst.shared.u32 [%demarc_a], 1;"),
      std::string::npos)
      << shared;
  EXPECT_NE(generic("mov.u64 %rd3, %rd2;\n", "atom.acq_rel.gpu.add.u32 %r1, [%rd3], 1;")
                .find("atom.acq_rel.gpu.shared.add.u32 %r1, [%demarc_a], 1;"),
            std::string::npos);
  // Hints and the read-only cache are for global memory.
  EXPECT_NE(generic("mov.u64 %rd3, %rd2;\n", "ld.L1::evict_last.u32 %r1, [%rd3];").find("isspacep"),
            std::string::npos);
}

TEST(ColoredGeneric, shared_memory_of_a_cluster_is_asked_for_as_such) {
  const std::string mapped = generic("mapa.u64 %rd3, %rd2, 1;\n");
  EXPECT_NE(mapped.find("isspacep.shared::cluster \t%demarc_v, %demarc_g;"), std::string::npos)
      << mapped;
}

TEST(ColoredGeneric, tiles_of_matrices_are_taken_from_shared_memory_alone) {
  const std::string tile = "wmma.load.a.sync.aligned.row.m8n8k128.b1 {%r1}, [%rd3], %r2;";
  EXPECT_NE(generic("mov.u64 %rd3, %rd2;\n", tile)
                .find("wmma.load.a.sync.aligned.row.m8n8k128.shared.b1 {%r1}, [%demarc_a], %r2;"),
            std::string::npos);
  EXPECT_NE(generic("selp.b64 %rd3, %rd2, %rd4, %p1;\n", tile).find("cannot be coloured"),
            std::string::npos);
}

TEST(ColoredGeneric, a_kernel_is_not_asked_about_what_another_makes_generic) {
  const std::string text =
      test::preamble + ".shared .b32 s;\n" +
      test::colored_kernel("makes", "mov.u64 %rd1, s;\ncvta.shared.u64 %rd2, %rd1;") +
      test::colored_kernel("loads",
                           "ld.param.u64 %rd1, [p];\nld.global.u64 %rd2, [%rd1];\n"
                           "st.u32 [%rd2], 1;");
  EXPECT_EQ(test::colored(text).module.text->find("isspacep"), std::string::npos);
}

}  // namespace
}  // namespace demarc::ptx
