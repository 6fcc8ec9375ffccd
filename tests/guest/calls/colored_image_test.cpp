// Which kernels of an image are coloured, and what they need.
#include "calls/colored_image.hpp"

#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Only the colours tell how many bytes lie together: here sixteen.
TEST(ColoredImages, leave_out_kernels_whose_accesses_are_wider_than_what_lies_together) {
  const std::string text =
      ".version 8.8\n.target sm_100\n.address_size 64\n" +
      test::kernel_of("narrow", "ld.global.v2.u64 {%rd2, %rd3}, [%rd1];") +
      test::kernel_of("wide", "ld.global.v4.u64 {%rd0, %rd1, %rd2, %rd3}, [%rd1];");
  const auto image = fatbin::image_at(text.c_str(), "text").value();
  auto read = ColoredImage::read(image, 100, "text", {}).value();
  EXPECT_THAT(read.kernels(), ElementsAre("narrow", "wide"));
  const ColoredCode code({}, color::make_law(color::Parities{{0x10}, 1}), {10, 0});
  const std::string made = read.text(code).value();
  EXPECT_THAT(made, HasSubstr("narrow"));
  EXPECT_THAT(made, Not(HasSubstr("wide")));
  EXPECT_THAT(read.kernels(), ElementsAre("narrow"));
  ASSERT_EQ(read.refused().size(), 1U);
  EXPECT_THAT(read.refused().at("wide"),
              HasSubstr("accesses 32 consecutive bytes; these colours keep only 16 together"));
}

TEST(ColoredImages, need_no_memory_for_kernels_that_are_left_out) {
  const std::string wide = "ld.global.v4.u64 {%rd0, %rd1, %rd2, %rd3}, [%rd1];";
  const std::string text = ".version 8.8\n.target sm_100\n.address_size 64\n" +
                           test::kernel_of("narrow", "ld.global.v2.u64 {%rd2, %rd3}, [%rd1];") +
                           test::kernel_of("wide",
                                           ".local .align 8 .b8 own[1024];\nmov.u64 %rd2, own;\n"
                                           "st.local.u64 [%rd2], %rd1;\n" +
                                               wide);
  const auto image = fatbin::image_at(text.c_str(), "text").value();
  auto read = ColoredImage::read(image, 100, "text", {}).value();
  const ColoredCode narrow({}, color::make_law(color::Parities{{0x10}, 1}), {10, 0});
  EXPECT_THAT(read.text(narrow).value(), HasSubstr("narrow"));
  EXPECT_EQ(read.needs().local_bytes, 0U);

  const std::string alone =
      ".version 8.8\n.target sm_100\n.address_size 64\n" + test::kernel_of("wide", wide);
  const auto other = fatbin::image_at(alone.c_str(), "text").value();
  auto none = ColoredImage::read(other, 100, "text", {}).value();
  EXPECT_THAT(none.text(narrow).value(), Not(HasSubstr("entry")));
  EXPECT_THAT(none.kernels(), IsEmpty());
}

// A kernel that waits for the one in front of it has no parameter more than before.
TEST(ColoredImages, keep_the_parameters_of_kernels_that_wait_themselves) {
  const std::string text = test::module_head + test::kernel_of("k", "mov.u32 %r1, 1;");
  const auto image = fatbin::image_at(text.c_str(), "text").value();
  const auto waiting = ColoredImage::read(image, 90, "text", {.overlapped = true}).value();
  EXPECT_THAT(waiting.parameters("k"), ElementsAre(FieldsAre(8U, 8U)));
  EXPECT_THAT(waiting.parameters("none"), IsEmpty());
}

TEST(ColoredImages, leave_out_kernels_that_print_unless_these_are_silent) {
  const std::string text =
      std::string(test::module_head) +
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n" +
      test::kernel_of("k",
                      "{ .param .b64 a; .param .b64 b; .param .b32 r;\nst.param.b64 [a], 0;\n"
                      "st.param.b64 [b], 0;\ncall.uni (r), vprintf, (a, b); }\n"
                      "st.global.u32 [%rd1], 1;");
  const auto image = fatbin::image_at(text.c_str(), "text").value();
  const auto refusing = ColoredImage::read(image, 90, "text", {}).value();
  EXPECT_THAT(refusing.kernels(), IsEmpty());
  EXPECT_THAT(refusing.refused().at("k"), HasSubstr("not coloured (--silence-printf)"));
  auto silent =
      ColoredImage::read(image, 90, "text", {.printing = ptx::ColoredPrinting::silenced}).value();
  EXPECT_THAT(silent.kernels(), ElementsAre("k"));
  const ColoredCode code({}, color::make_law(color::Parities{{0x10}, 1}), {9, 0});
  const std::string made = silent.text(code).value();
  EXPECT_THAT(made, HasSubstr("entry k"));
  EXPECT_THAT(made, Not(HasSubstr("vprintf")));
}

}  // namespace
}  // namespace demarc::cuda
