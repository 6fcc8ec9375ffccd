// What textures and surfaces of a launch may say, and their handles.
#include "demarc/launch/image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/launch/launch_write.hpp"

namespace demarc::gpu {
namespace {

using ::testing::HasSubstr;

const std::string whole_texture =
    R"({"texture": {"buffer": "in+32", "shape": "2d", "type": "f16", "channels": 4, "size": ["n", 32],
        "pitch": 512, "address": ["wrap", "border"], "filter": "linear",
        "coordinates": "normalized", "border": [1, 0.5, 0, 1]}})";
const std::string whole_surface =
    R"({"surface": {"buffer": "in", "shape": "1d-layered", "type": "u8", "size": [64, 4]}})";

std::string file_with(const std::string& arguments) {
  return R"({"schema": "demarc.launch/1", "ptx": "k.ptx", "parameters": {"n": 60},
    "buffers": [{"name": "in", "bytes": 16896}],
    "launches": [{"kernel": "k", "grid": 1, "block": 32, "args": [)" +
         arguments + "]}]}";
}

std::string refusal_of(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  text.replace(text.find(from), from.size(), to);
  const auto launch = parse_launch_json(file_with(text), "x.json");
  return launch ? "accepted" : launch.error().message;
}

TEST(Images, of_launch_files_are_read_and_written_and_have_one_handle_each) {
  const auto launch = parse_launch_json(
      file_with(whole_texture + "," + whole_surface + "," + whole_texture), "x.json");
  ASSERT_TRUE(launch) << launch.error().message;
  ASSERT_EQ(launch->images.size(), 2U);
  Image expected;
  expected.offset = 32;
  expected.type = ScalarType::f16;
  expected.channels = 4;
  expected.size = {60, 32, 1};
  expected.pitch = 512;
  expected.sampling.emplace();
  expected.sampling->outside = {OutsideMode::wrap, OutsideMode::border, OutsideMode::clamp};
  expected.sampling->filters = true;
  expected.sampling->normalized_coordinates = true;
  expected.sampling->border = {1, 0.5F, 0, 1};
  EXPECT_EQ(launch->images[0], expected);
  Image surface;
  surface.shape = ImageShape::one_layered;
  surface.type = ScalarType::u8;
  surface.size = {64, 1, 1};
  surface.layers = 4;
  surface.pitch = 64;
  EXPECT_EQ(launch->images[1], surface);
  const std::vector<Argument> arguments{ImageUse{0}, ImageUse{1}, ImageUse{0}};
  EXPECT_EQ(launch->kernels[0].arguments, arguments);
  const auto again = parse_launch_json(launch_to_json(*launch).value(), "y.json");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->images, launch->images);
  EXPECT_EQ(again->kernels, launch->kernels);
  const auto packed = pack_argument(ImageUse{1}, default_addresses(*launch));
  std::uint64_t handle = 0;
  ASSERT_EQ(packed.size(), sizeof handle);
  std::memcpy(&handle, packed.data(), sizeof handle);
  EXPECT_EQ(image_of_handle(handle), 1U);
  EXPECT_FALSE(image_of_handle(default_base_address));
}

TEST(Images, that_no_card_has_or_the_emulator_does_not_cover_are_refused_by_key) {
  const std::string where = "x.json.launches[0].args[0].texture";
  const auto refused = [](const std::string& from, const std::string& to) {
    return refusal_of(whole_texture, from, to);
  };
  EXPECT_EQ(refused("\"2d\"", "\"cube\""),
            where +
                ".shape: 'cube' is not covered; there are linear, 1d, 2d, 3d, 1d-layered, "
                "2d-layered");
  EXPECT_EQ(refused("f16", "f64"),
            where + ".type: channels of f64 are not covered; there are those of at most 32 bits");
  EXPECT_EQ(refused("\"channels\": 4", "\"channels\": 3"),
            where + ".channels: 3 is none of 1, 2, 4");
  EXPECT_EQ(refused("[\"n\", 32]", "[60]"), where + ".size: 1 numbers, 2 were expected for 2d");
  EXPECT_EQ(refused("32],", "0],"), where + ".size: 0 is not within 1 .. 65536");
  EXPECT_EQ(refused("in+32", "in+4"),
            where + ".buffer: the offset 4 is not a multiple of a texel's 8 bytes");
  EXPECT_EQ(refused("512", "472"),
            where + ".pitch: 472 is not a multiple of a texel's 8 bytes within 480 .. 8589934592");
  EXPECT_EQ(refused("512", "516"),
            where + ".pitch: 516 is not a multiple of a texel's 8 bytes within 480 .. 8589934592");
  EXPECT_EQ(refused("\"wrap\"", "\"repeat\""),
            where + ".address: 'repeat' is none of wrap, clamp, mirror, border");
  EXPECT_EQ(refused("[\"wrap\", \"border\"]", "[\"wrap\"]"),
            where + ".address: 1 words, 2 were expected");
  EXPECT_EQ(refused("[\"wrap\", \"border\"]", "7"),
            where + ".address: wrap, clamp, mirror or border was expected");
  EXPECT_EQ(refused("\"linear\"", "\"cubic\""),
            where + ".filter: 'cubic' is neither point nor linear");
  EXPECT_EQ(refused("[1, 0.5, 0, 1]", "[1]"), where + ".border: 1 numbers, 4 were expected");
  EXPECT_EQ(refused("[1, 0.5, 0, 1]", "[1, \"a\", 0, 1]"),
            where + ".border[1]: a number was expected");
  EXPECT_EQ(refused("\"border\": [", "\"read\": \"normalized\", \"border\": ["),
            where +
                ".read: channels of f16 have no normalized values; those of 8 and 16-bit "
                "integers do");
  EXPECT_EQ(refused("f16", "u16"),
            where + ".filter: integers are filtered where they are read normalized");
  EXPECT_EQ(refused("f16\", \"channels\": 4", "u16\", \"channels\": 4, \"level\": 2"),
            where + ": unknown key 'level'");
  EXPECT_EQ(refused("\"2d\"", "\"1d-layered\""), where + ".address: 2 words, 1 were expected");
  EXPECT_THAT(refused("512", "536"),
              HasSubstr("texture 0: its texels end 17128 bytes into buffer 'in' of 16896 bytes"))
      << "within";
}

TEST(Images, of_linear_memory_have_no_address_mode_and_are_no_surfaces) {
  const std::string linear =
      R"({"texture": {"buffer": "in", "shape": "linear", "type": "u8", "size": [60]}})";
  EXPECT_EQ(refusal_of(linear, "u8", "i8"), "accepted");
  EXPECT_THAT(refusal_of(linear, "[60]", R"([60], "address": "wrap")"),
              HasSubstr("a texture of linear memory is read at whole texels"));
  EXPECT_THAT(refusal_of(linear, "[60]", R"([60], "coordinates": "normalized")"),
              HasSubstr("leave out address, filter, coordinates and border"));
  EXPECT_THAT(refusal_of(whole_surface, "1d-layered\", \"type\": \"u8\", \"size\": [64, 4]",
                         "linear\", \"type\": \"u8\", \"size\": [64]"),
              HasSubstr("surface.shape: a surface is of an array, and not of linear memory"));
  EXPECT_THAT(refusal_of(whole_surface, "[64, 4]", "[64, 2049]"),
              HasSubstr("2049 layers are not within 1 .. 2048"));
  EXPECT_THAT(refusal_of(whole_surface, "[64, 4]", R"([64, 4], "filter": "point")"),
              HasSubstr("unknown key 'filter'"));
}

TEST(Images, that_buffers_do_not_hold_are_refused) {
  Launch launch = parse_launch_json(file_with(whole_surface), "x.json").value();
  launch.images[0].offset = 16896 - 255;
  EXPECT_THAT(validate(launch).error().message,
              HasSubstr("surface 0: its texels end 16897 bytes into buffer 'in' of 16896 bytes"));
  launch.images[0].offset = 16896 - 256;
  EXPECT_TRUE(validate(launch));
  launch.images[0].buffer = 1;
  EXPECT_THAT(validate(launch).error().message, HasSubstr("surface 0: buffer 1 of 1"));
  launch.images.clear();
  EXPECT_THAT(validate(launch).error().message, HasSubstr("texture or surface 0 of 0"));
}

TEST(Images, are_refused_by_who_does_not_take_them) {
  const auto launch = parse_launch_json(file_with(whole_surface), "x.json").value();
  EXPECT_EQ(refuse_images(launch.kernels[0], "a study does").error().message,
            "kernel 'k': the launch gives it a texture or a surface, which a study does not take");
  EXPECT_TRUE(refuse_images(KernelLaunch{}, "a study does"));
}

}  // namespace
}  // namespace demarc::gpu
