// Fetches from textures: values by hand for each address mode and filter, and random ones beside an
// evaluation of its own.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "image_kernels.hpp"

namespace demarc::emulate {
namespace {

using gpu::Image;
using gpu::ImageShape;
using gpu::OutsideMode;
using gpu::Sampling;
using gpu::ScalarType;
using test::at;
using test::at_texel;
using test::bytes_of;
using test::fetch_floats;
using test::fetch_words;
using test::float_image;
using test::image_finding;
using test::image_kernel;
using test::image_launch;
using test::Place;
using test::run_image;
using test::tens;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string row_fetch = fetch_floats("tex.1d.v4.f32.f32", "%f1");

// Four texels of 10, 20, 30, 40.
std::vector<float> fetched(const Sampling& sampling, const std::vector<float>& coordinates) {
  std::vector<Place> spots;
  for (const float x : coordinates) spots.push_back(at(x));
  return run_image(row_fetch,
                   image_launch(spots, float_image(ImageShape::one, {4, 1, 1}, sampling), tens(4)))
      .floats();
}

Sampling sampled(OutsideMode mode, bool filters, bool normalized) {
  Sampling sampling;
  sampling.outside.fill(mode);
  sampling.filters = filters;
  sampling.normalized_coordinates = normalized;
  return sampling;
}

TEST(Textures, give_the_texel_that_a_coordinate_lies_in) {
  EXPECT_THAT(
      fetched(sampled(OutsideMode::clamp, false, false), {-3, -0.25, 0, 0.75, 1, 3.5, 4, 9}),
      ElementsAre(10, 10, 10, 10, 20, 40, 40, 40));
  EXPECT_THAT(fetched(sampled(OutsideMode::border, false, false), {-0.25, 0, 3.5, 4}),
              ElementsAre(0, 10, 40, 0));
  EXPECT_THAT(
      fetched(sampled(OutsideMode::wrap, false, true), {-1.25, -0.25, 0, 0.25, 1, 1.5, 2.75}),
      ElementsAre(40, 40, 10, 20, 10, 30, 40));
  EXPECT_THAT(
      fetched(sampled(OutsideMode::mirror, false, true), {-0.25, -0.5, 0, 0.75, 1, 1.25, 2.25}),
      ElementsAre(10, 20, 10, 40, 40, 30, 20));
  EXPECT_THAT(fetched(sampled(OutsideMode::clamp, false, true), {-1, 0.5, 1}),
              ElementsAre(10, 30, 40));
  // Without normalized coordinates these clamp.
  EXPECT_THAT(fetched(sampled(OutsideMode::wrap, false, false), {-1, 5}), ElementsAre(10, 40));
  EXPECT_THAT(fetched(sampled(OutsideMode::mirror, false, false), {-1, 5}), ElementsAre(10, 40));
  EXPECT_THAT(fetched(sampled(OutsideMode::clamp, false, false),
                      {std::nanf(""), HUGE_VALF, -HUGE_VALF, 3e38F}),
              ElementsAre(10, 40, 10, 40));
  EXPECT_THAT(fetched(sampled(OutsideMode::wrap, false, true), {1e30F, -1e30F}),
              ElementsAre(10, 10));
}

TEST(Textures, weight_neighbours_by_256ths) {
  EXPECT_THAT(fetched(sampled(OutsideMode::clamp, true, false), {0, 0.5, 1, 1.25, 3.5, 4, 7}),
              ElementsAre(10, 10, 15, 17.5, 40, 40, 40));
  EXPECT_THAT(fetched(sampled(OutsideMode::border, true, false), {-0.5, 0, 0.25, 4, 4.25}),
              ElementsAre(0, 5, 7.5, 20, 10));
  EXPECT_THAT(fetched(sampled(OutsideMode::wrap, true, true), {0, 1, 0.25}),
              ElementsAre(25, 25, 15));
  EXPECT_THAT(fetched(sampled(OutsideMode::mirror, true, true), {0, 1, 1.25}),
              ElementsAre(10, 40, 35));
  // 1 + 1/1024 lies between two steps, nearer to the first.
  EXPECT_THAT(fetched(sampled(OutsideMode::clamp, true, false),
                      {1 + 1.0F / 1024, 1 + 3.0F / 1024, 1.5F - 1.0F / 1024}),
              ElementsAre(15, 15 + 10.0F / 256, 20));
  Sampling bordered = sampled(OutsideMode::border, true, false);
  bordered.border = {100, 0, 0, 0};
  EXPECT_THAT(fetched(bordered, {-2, 0}), ElementsAre(100, 55));
}

TEST(Textures, of_linear_memory_are_zero_outside) {
  Image image = float_image(ImageShape::linear, {4, 1, 1}, {});
  const std::vector<Place> spots{at_texel(-1), at_texel(0), at_texel(3), at_texel(4)};
  const std::string text = fetch_floats("tex.1d.v4.f32.s32", "%r3");
  const auto run = run_image(text, image_launch(spots, image, tens(4)));
  EXPECT_THAT(run.floats(0), ElementsAre(0, 10, 40, 0));
  EXPECT_THAT(run.floats(1), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(run.floats(3), ElementsAre(0, 0, 0, 0));
}

TEST(Textures, in_two_and_three_dimensions_and_layers_follow_pitch_and_size) {
  // 3 x 2 texels and 2 planes or layers, in rows of 4.
  Image image = float_image(ImageShape::two, {3, 2, 1}, {});
  image.pitch = 16;
  EXPECT_THAT(run_image(fetch_floats("tex.2d.v4.f32.f32", "%f1, %f2"),
                        image_launch({at(2.5, 0), at(0, 1.5), at(2, 7)}, image, tens(16)))
                  .floats(),
              ElementsAre(30, 50, 70));
  image.shape = ImageShape::three;
  image.size = {3, 2, 2};
  EXPECT_THAT(run_image(fetch_floats("tex.3d.v4.f32.f32", "%f1, %f2, %f3, %f3"),
                        image_launch({at(0, 0, 1), at(2, 1, 1), at(1, 1, 0)}, image, tens(16)))
                  .floats(),
              ElementsAre(90, 150, 60));
  image.sampling->filters = true;
  EXPECT_THAT(run_image(fetch_floats("tex.3d.v4.f32.f32", "%f1, %f2, %f3, %f3"),
                        image_launch({at(1, 1, 1)}, image, tens(16)))
                  .floats(),
              ElementsAre(75));
  image.sampling->filters = false;
  image.shape = ImageShape::two_layered;
  image.size = {3, 2, 1};
  image.layers = 2;
  const std::string layered = image_kernel(
      "tex.a2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%r5, "
      "%f1, %f2, %f2}];" +
      test::store_floats);
  const auto layer = [](float x, float y, std::uint32_t number) {
    Place place = at(x, y);
    place.z = number;
    return place;
  };
  EXPECT_THAT(run_image(layered, image_launch({layer(0, 0, 0), layer(1, 1, 1), layer(1, 1, 9)},
                                              image, tens(16)))
                  .floats(),
              ElementsAre(10, 140, 140));
  image.shape = ImageShape::one_layered;
  image.size = {3, 1, 1};
  image.layers = 4;
  EXPECT_THAT(
      run_image(image_kernel("tex.a1d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%r5, %f1}];" +
                             test::store_floats),
                image_launch({layer(2, 0, 3), layer(0, 0, 1)}, image, tens(16)))
          .floats(),
      ElementsAre(150, 50));
}

TEST(Textures, gather_a_channel_of_four_neighbours_around_the_square) {
  const auto run =
      run_image(fetch_floats("tld4.r.2d.v4.f32.f32", "%f1, %f2"),
                image_launch({at(1, 1)}, float_image(ImageShape::two, {2, 2, 1}, {}), tens(4)));
  EXPECT_THAT(
      run.words,
      ElementsAre(std::bit_cast<std::uint32_t>(30.0F), std::bit_cast<std::uint32_t>(40.0F),
                  std::bit_cast<std::uint32_t>(20.0F), std::bit_cast<std::uint32_t>(10.0F)));
}

Image one_texel(ScalarType type, std::uint32_t channels) {
  Image image;
  image.shape = ImageShape::linear;
  image.type = type;
  image.channels = channels;
  image.sampling.emplace();
  return image;
}

TEST(Textures, give_integers_of_each_format_and_fractions) {
  const std::string words = fetch_words("tex.1d.v4.s32.s32", "%r3");
  const auto first = [&](const Image& image, const std::vector<std::byte>& texels) {
    return run_image(words, image_launch({at_texel(0)}, image, texels)).words;
  };
  EXPECT_THAT(first(one_texel(ScalarType::u8, 4), bytes_of<std::uint8_t>({1, 2, 200, 255})),
              ElementsAre(1, 2, 200, 255));
  EXPECT_THAT(first(one_texel(ScalarType::i8, 2), bytes_of<std::int8_t>({-1, 2})),
              ElementsAre(0xffffffff, 2, 0, 0));
  EXPECT_THAT(first(one_texel(ScalarType::u16, 2), bytes_of<std::uint16_t>({65535, 7})),
              ElementsAre(65535, 7, 0, 0));
  EXPECT_THAT(first(one_texel(ScalarType::i16, 1), bytes_of<std::int16_t>({-2})),
              ElementsAre(0xfffffffe, 0, 0, 0));
  EXPECT_THAT(first(one_texel(ScalarType::u32, 1), bytes_of<std::uint32_t>({0x80000001})),
              ElementsAre(0x80000001, 0, 0, 0));
  EXPECT_THAT(first(one_texel(ScalarType::i32, 4), bytes_of<std::int32_t>({-5, 6, -7, 8})),
              ElementsAre(0xfffffffb, 6, 0xfffffff9, 8));
  const std::string floats = fetch_floats("tex.1d.v4.f32.s32", "%r3");
  const auto fraction = [&](Image image, const std::vector<std::byte>& texels) {
    image.sampling->normalized_values = !is_floating(image.type);
    return run_image(floats, image_launch({at_texel(0)}, image, texels)).floats()[0];
  };
  EXPECT_EQ(fraction(one_texel(ScalarType::u8, 1), bytes_of<std::uint8_t>({51})), 0.2F);
  EXPECT_EQ(fraction(one_texel(ScalarType::i8, 1), bytes_of<std::int8_t>({-128})), -1.0F);
  EXPECT_EQ(fraction(one_texel(ScalarType::u16, 1), bytes_of<std::uint16_t>({13107})), 0.2F);
  EXPECT_EQ(fraction(one_texel(ScalarType::i16, 1), bytes_of<std::int16_t>({32767})), 1.0F);
  EXPECT_EQ(fraction(one_texel(ScalarType::f16, 1), bytes_of<std::uint16_t>({0x3e00})), 1.5F);
  EXPECT_TRUE(
      std::isnan(fraction(one_texel(ScalarType::f32, 1), bytes_of<std::uint32_t>({0x7fc00123}))));
}

TEST(Textures, cut_normalized_coordinates_to_21_bits) {
  // A fifth is not a multiple of 2^-21: what lies a little above it, still lies below it when it is
  // cut.
  const Image image =
      float_image(ImageShape::one, {5, 1, 1}, sampled(OutsideMode::wrap, false, true));
  const auto run =
      run_image(row_fetch, image_launch({at(0.2F), at(0.2F + 0x1p-21F)}, image, tens(5)));
  EXPECT_THAT(run.floats(), ElementsAre(10, 20));
}

TEST(Textures, filter_numbers_of_16_bits_where_channels_are_no_wider) {
  const auto halfway = [](ScalarType type, const std::vector<std::byte>& texels) {
    Image image = one_texel(type, 1);
    image.shape = ImageShape::one;
    image.size = {2, 1, 1};
    image.sampling = sampled(OutsideMode::clamp, true, false);
    image.sampling->normalized_values = !is_floating(type);
    return run_image(row_fetch, image_launch({at(1)}, image, texels)).floats()[0];
  };
  // Halves of f16 are rounded away from zero: 1 and 1 + 2^-10, and the same below zero.
  EXPECT_EQ(halfway(ScalarType::f16, bytes_of<std::uint16_t>({0x3c00, 0x3c01})), 1 + 0x1p-10F);
  EXPECT_EQ(halfway(ScalarType::f16, bytes_of<std::uint16_t>({0xbc00, 0xbc01})), -1 - 0x1p-10F);
  EXPECT_EQ(halfway(ScalarType::f16, bytes_of<std::uint16_t>({1, 2})), 0x1p-23F) << "subnormal";
  // Those of fractions up: 0.5 and 1.5 of 65535, -1.5 of 32767.
  EXPECT_EQ(halfway(ScalarType::u16, bytes_of<std::uint16_t>({0, 1})), 1 / 65535.0F);
  EXPECT_EQ(halfway(ScalarType::u8, bytes_of<std::uint8_t>({0, 1})), 129 / 65535.0F);
  EXPECT_EQ(halfway(ScalarType::i16, bytes_of<std::int16_t>({-1, -2})), -1 / 32767.0F);
}

TEST(Textures, divide_the_weight_of_a_plane_among_its_texels) {
  // 3/256 along x and 43/256 along y: right above gets 129/256 of a step, which is rounded to one.
  const Image plane =
      float_image(ImageShape::two, {2, 2, 1}, sampled(OutsideMode::clamp, true, false));
  const std::string fetch = fetch_floats("tex.2d.v4.f32.f32", "%f1, %f2");
  const std::vector<Place> spot{at(0.5F + 3.0F / 256, 0.5F + 43.0F / 256)};
  const auto weight_of = [&](std::size_t texel) {
    std::vector<float> texels(4);
    texels[texel] = 256;
    return run_image(fetch, image_launch(spot, plane, bytes_of(texels))).floats()[0];
  };
  EXPECT_EQ(weight_of(0), 211);
  EXPECT_EQ(weight_of(1), 2);
  EXPECT_EQ(weight_of(2), 42);
  EXPECT_EQ(weight_of(3), 1);
}

// Apart from the emulator: by frac() and in long double, as the guide writes it.
long double expected_row(const std::vector<float>& texels, float x, OutsideMode mode,
                         bool filters) {
  const auto count = static_cast<long double>(texels.size());
  const auto texel = [&](long double index) -> long double {
    long double place = (index + 0.5L) / count;
    if (mode == OutsideMode::wrap) place -= std::floor(place);
    if (mode == OutsideMode::mirror) {
      const long double whole = std::floor(place);
      place -= whole;
      if (std::fmod(whole, 2.0L) != 0) place = 1 - place;
    }
    if (mode == OutsideMode::border && (place < 0 || place >= 1)) return 0;
    const long double at = std::floor(place * count);
    return texels[static_cast<std::size_t>(std::min(std::max(at, 0.0L), count - 1))];
  };
  const long double at = static_cast<long double>(x) * count;
  if (!filters) return texel(std::floor(at));
  const long double low = std::floor(at - 0.5L);
  const long double weight = std::floor((at - 0.5L - low) * 256 + 0.5L) / 256;
  return (1 - weight) * texel(low) + weight * texel(low + 1);
}

TEST(Textures, give_at_random_places_what_the_formulas_give) {
  std::mt19937 random(7);
  for (const std::uint32_t size : {1U, 5U, 16U}) {
    std::vector<float> texels(size);
    for (float& value : texels) value = static_cast<float>(random() % 2000) / 8 - 100;
    for (const OutsideMode mode :
         {OutsideMode::clamp, OutsideMode::border, OutsideMode::wrap, OutsideMode::mirror}) {
      for (const bool filters : {false, true}) {
        std::vector<Place> spots;
        std::vector<float> coordinates;
        for (int i = 0; i < 64; ++i) {
          coordinates.push_back(static_cast<float>(random() % 4096) / 1024 - 1.5F);
          spots.push_back(at(coordinates.back()));
        }
        const Image image =
            float_image(ImageShape::one, {size, 1, 1}, sampled(mode, filters, true));
        const auto found =
            run_image(row_fetch, image_launch(spots, image, bytes_of(texels))).floats();
        ASSERT_EQ(found.size(), spots.size());
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_EQ(found[i],
                    static_cast<float>(expected_row(texels, coordinates[i], mode, filters)))
              << name_of(mode) << " " << filters << " " << size << " " << coordinates[i];
      }
    }
  }
}

TEST(Textures, answer_for_their_sizes) {
  Image image = float_image(ImageShape::two_layered, {3, 2, 1}, {}, 2);
  const auto asked = [&](const std::string& size) {
    return image_kernel("txq." + size + ".b32 %r10, [%rd4];\nst.global.u32 [%rd2], %r10;");
  };
  const gpu::Launch launch = image_launch({at(0)}, image, tens(12));
  EXPECT_EQ(run_image(asked("width"), launch).words[0], 3U);
  EXPECT_EQ(run_image(asked("height"), launch).words[0], 2U);
  EXPECT_EQ(run_image(asked("array_size"), launch).words[0], 2U);
  EXPECT_EQ(image_finding(asked("depth"), launch),
            "a size that a texture that is 2d-layered does not have");
}

TEST(Textures, that_a_launch_does_not_give_or_gives_otherwise_are_findings) {
  const Image image = float_image(ImageShape::one, {4, 1, 1}, {});
  gpu::Launch launch = image_launch({at(0)}, image, tens(4));
  EXPECT_EQ(image_finding(fetch_floats("tex.2d.v4.f32.f32", "%f1, %f2"), launch),
            "an access in 2d to a texture that is 1d");
  EXPECT_EQ(image_finding(fetch_floats("tex.a1d.v4.f32.f32", "%r3, %f2"), launch),
            "an access in 1d, layered, to a texture that is 1d");
  EXPECT_EQ(image_finding(fetch_words("tex.1d.v4.u32.f32", "%f1"), launch),
            "texels of f32 are read as integers: the texture gives f32");
  launch.images[0].shape = ImageShape::linear;
  EXPECT_EQ(image_finding(row_fetch, launch),
            "a texture of linear memory is read at a coordinate that is not an integer");
  launch.images[0].shape = ImageShape::one;
  launch.images[0].sampling->normalized_coordinates = true;
  EXPECT_EQ(image_finding(fetch_floats("tex.1d.v4.f32.s32", "%r3"), launch),
            "a texture of normalized coordinates is read at integers");
  launch.kernels[0].arguments[2] = gpu::make_scalar(ScalarType::u64, std::int64_t{0x1234});
  EXPECT_EQ(image_finding(row_fetch, launch),
            "0x1234 is not a handle of a texture of the launch file");
  const auto next = static_cast<std::int64_t>(gpu::image_handle(1));
  launch.kernels[0].arguments[2] = gpu::make_scalar(ScalarType::u64, next);
  EXPECT_THAT(image_finding(row_fetch, launch), HasSubstr("is not a handle of a texture"));
  launch.kernels[0].arguments[2] = gpu::ImageUse{0};
  launch.images[0].sampling.reset();
  EXPECT_THAT(image_finding(row_fetch, launch),
              HasSubstr("is the handle of a surface, and a texture was expected"));
}

// The places of every access, in order.
class Places final : public TraceSink {
 public:
  Result<void> begin_kernel(const TraceHeader& header) override {
    header_ = header;
    return {};
  }
  Result<void> consume(const TraceChunk& chunk) override {
    visit_events(chunk, warp_, *this);
    return {};
  }
  void run(const RunEvent&) {}
  void access(const AccessEvent& event) {
    const TraceInstruction& instruction = header_.instructions[event.instruction];
    if (instruction.text.find("tex.") == std::string::npos) return;
    bytes = instruction.bytes;
    for (unsigned lane = 0; lane < 32; ++lane)
      if (((event.mask >> lane) & 1U) != 0) found.push_back(event.addresses[lane]);
  }

  std::uint32_t bytes = 0;
  std::vector<std::uint64_t> found;

 private:
  TraceHeader header_;
  std::uint32_t warp_ = 0;
};

TEST(Textures, leave_in_the_trace_what_they_read) {
  Image image = float_image(ImageShape::two, {4, 4, 1}, sampled(OutsideMode::border, true, false));
  const gpu::Launch launch = image_launch({at(2, 1), at(0, 0)}, image, tens(16));
  Places spots;
  const auto outcome =
      test::run_text(fetch_floats("tex.2d.v4.f32.f32", "%f1, %f2"), launch, {}, &spots);
  ASSERT_TRUE(outcome) << outcome.error().message;
  const std::uint64_t start = gpu::default_addresses(launch)[2];
  EXPECT_EQ(spots.bytes, 4U);
  // The second thread's texels but the last lie outside.
  EXPECT_THAT(spots.found, ElementsAre(start + 4, start + 8, start + 20, start + 24, start));
  ASSERT_EQ(outcome->approximations.size(), 1U);
  EXPECT_EQ(outcome->approximations[0].text, "tex.2d.v4.f32.f32");
}

TEST(Textures, in_other_forms_are_refused_by_name) {
  const gpu::Launch launch =
      image_launch({at(0)}, float_image(ImageShape::two, {4, 1, 1}, {}), tens(4));
  for (const std::string& line :
       {std::string("tex.level.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%f1, %f2}], %f3;"),
        std::string("tex.grad.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%f1, %f2}], {%f1, %f2}, "
                    "{%f1, %f2};"),
        std::string("tex.cube.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%f1, %f2, %f3, %f3}];"),
        std::string("tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%f1, %f2}], {%r3, %r4};"),
        std::string("tex.2dms.v4.f32.s32 {%f4, %f5, %f6, %f7}, [%rd4, {%r3, %r4, %r5, %r5}];"),
        std::string("tld4.r.cube.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%f1, %f2, %f3, %f3}];"),
        std::string("tld4.r.1d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%f1}];"),
        std::string("txq.num_mipmap_levels.b32 %r10, [%rd4];"),
        std::string("sust.p.2d.v4.b32.trap [%rd4, {%r3, %r4}], {%r6, %r6, %r6, %r6};"),
        std::string("suq.channel_order.b32 %r10, [%rd4];")}) {
    const auto outcome = test::run_text(image_kernel(line), launch);
    ASSERT_FALSE(outcome) << line;
    EXPECT_THAT(outcome.error().message, HasSubstr("the emulator does not cover: " + line));
  }
}

}  // namespace
}  // namespace demarc::emulate
