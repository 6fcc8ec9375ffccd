// Surfaces: bytes along a row, and what accesses outside do.
#include <gmock/gmock.h>

#include "image_kernels.hpp"

namespace demarc::emulate {
namespace {

using gpu::Image;
using gpu::ImageShape;
using gpu::ScalarType;
using test::at_texel;
using test::bytes_of;
using test::image_finding;
using test::image_kernel;
using test::image_launch;
using test::Place;
using test::run_image;
using testing::ElementsAre;
using testing::HasSubstr;

// 4 x 2 words of 0, 1, 2, … in rows of 5.
Image words_surface() {
  Image image;
  image.type = ScalarType::u32;
  image.size = {4, 2, 1};
  image.pitch = 20;
  return image;
}

std::vector<std::byte> counted(std::size_t count) {
  std::vector<std::uint32_t> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = static_cast<std::uint32_t>(i);
  return bytes_of(words);
}

std::vector<std::uint32_t> texels_of(const test::ImageRun& run) {
  std::vector<std::uint32_t> words(run.texels.size() / 4);
  std::memcpy(words.data(), run.texels.data(), words.size() * 4);
  return words;
}

std::string load_in(const std::string& boundary) {
  return image_kernel("suld.b.2d.b32." + boundary +
                      " {%r10}, [%rd4, {%r3, %r4}];\nst.global.u32 [%rd2], %r10;");
}

TEST(Surfaces, are_read_by_the_byte_of_a_row) {
  const auto launch = [](const std::vector<Place>& spots) {
    return image_launch(spots, words_surface(), counted(10));
  };
  EXPECT_THAT(run_image(load_in("trap"), launch({at_texel(0, 0), at_texel(12, 1)})).channel(0),
              ElementsAre(0, 8));
  const std::vector<Place> outside{at_texel(16, 0), at_texel(-4, 1), at_texel(4, 2),
                                   at_texel(8, -1), at_texel(8, 1)};
  EXPECT_THAT(run_image(load_in("clamp"), launch(outside)).channel(0), ElementsAre(3, 5, 6, 2, 7));
  EXPECT_THAT(run_image(load_in("zero"), launch(outside)).channel(0), ElementsAre(0, 0, 0, 0, 7));
  EXPECT_EQ(image_finding(load_in("trap"), launch({at_texel(16, 1)})),
            "4 bytes at byte 16, row 1, plane 0, layer 0 are not within a surface with rows of 16 "
            "bytes, 2 rows, 1 planes, 1 layers");
  EXPECT_THAT(image_finding(load_in("zero"), launch({at_texel(2, 0)})),
              HasSubstr("byte 2 of a surface's row is not a multiple of the 4"));
}

TEST(Surfaces, give_narrow_and_several_elements) {
  const gpu::Launch launch =
      image_launch({at_texel(8, 1)}, words_surface(),
                   bytes_of<std::uint8_t>(std::vector<std::uint8_t>(40, 0xfe)));
  EXPECT_EQ(
      run_image(image_kernel("suld.b.2d.b8.trap {%h1}, [%rd4, {%r3, %r4}];\ncvt.s32.s16 %r10, "
                             "%h1;\nst.global.u32 [%rd2], %r10;"),
                launch)
          .words[0],
      0xfeU);
  Image aligned = words_surface();
  aligned.pitch = 24;
  EXPECT_THAT(run_image(image_kernel("suld.b.2d.v2.b32.trap {%r10, %r11}, [%rd4, {%r3, %r4}];\n"
                                     "st.global.v2.u32 [%rd2], {%r10, %r11};"),
                        image_launch({at_texel(8, 1)}, aligned, counted(10)))
                  .words,
              ElementsAre(8, 9, 0, 0));
}

TEST(Surfaces, are_written_within_alone) {
  const auto store = [](const std::string& boundary) {
    return image_kernel("add.u32 %r10, %r1, 100;\nsust.b.2d.b32." + boundary +
                        " [%rd4, {%r3, %r4}], {%r10};");
  };
  const gpu::Launch launch =
      image_launch({at_texel(4, 1), at_texel(16, 0), at_texel(0, 0)}, words_surface(), counted(10));
  EXPECT_THAT(texels_of(run_image(store("zero"), launch)),
              ElementsAre(102, 1, 2, 3, 4, 5, 100, 7, 8, 9));
  EXPECT_THAT(texels_of(run_image(store("clamp"), launch)),
              ElementsAre(102, 1, 2, 101, 4, 5, 100, 7, 8, 9));
  EXPECT_THAT(image_finding(store("trap"), launch), HasSubstr("are not within a surface"));
}

TEST(Surfaces, combine_elements) {
  const auto reduce = [](const std::string& operation) {
    return image_kernel("mov.b32 %r10, 6;\nsured.b." + operation +
                        ".trap [%rd4, {%r3, %r4}], %r10;");
  };
  const auto after = [&](const std::string& operation) {
    return texels_of(run_image(reduce(operation), image_launch({at_texel(8, 0), at_texel(8, 0)},
                                                               words_surface(), counted(10))))[2];
  };
  EXPECT_EQ(after("add.2d.u32"), 14U);
  EXPECT_EQ(after("min.2d.s32"), 2U);
  EXPECT_EQ(after("max.2d.u32"), 6U);
  EXPECT_EQ(after("and.2d.b32"), 2U);
  EXPECT_EQ(after("or.2d.b32"), 6U);
}

TEST(Surfaces, in_three_dimensions_and_layers_and_their_sizes) {
  Image image = words_surface();
  image.shape = ImageShape::three;
  image.size = {2, 2, 2};
  image.pitch = 8;
  const std::string solid = image_kernel(
      "suld.b.3d.b32.trap {%r10}, [%rd4, {%r3, %r4, %r5, %r5}];\nsuq.depth.b32 %r11, [%rd4];\n"
      "st.global.v2.u32 [%rd2], {%r10, %r11};");
  EXPECT_THAT(run_image(solid, image_launch({at_texel(4, 0, 1)}, image, counted(8))).words,
              ElementsAre(5, 2, 0, 0));
  image.shape = ImageShape::two_layered;
  image.size = {2, 2, 1};
  image.layers = 2;
  const std::string layered = image_kernel(
      "suld.b.a2d.b32.clamp {%r10}, [%rd4, {%r5, %r3, %r4, %r4}];\nst.global.u32 [%rd2], %r10;");
  EXPECT_THAT(
      run_image(layered, image_launch({at_texel(4, 1, 1), at_texel(0, 0, 7)}, image, counted(8)))
          .channel(0),
      ElementsAre(7, 4));
}

TEST(Surfaces, that_are_textures_or_of_another_shape_are_findings) {
  gpu::Launch launch = image_launch({at_texel(0, 0)}, words_surface(), counted(10));
  EXPECT_EQ(image_finding(image_kernel("suld.b.1d.b32.zero {%r10}, [%rd4, {%r3}];"), launch),
            "an access in 1d to a surface that is 2d");
  launch.images[0].sampling.emplace();
  EXPECT_THAT(image_finding(load_in("zero"), launch),
              HasSubstr("is the handle of a texture, and a surface was expected"));
  launch.kernels[0].arguments[2] = gpu::BufferUse{2, 0};
  EXPECT_THAT(image_finding(load_in("zero"), launch), HasSubstr("is not a handle of a surface"));
}

}  // namespace
}  // namespace demarc::emulate
