// What tensor maps may say, in launch files and as bytes.
#include "demarc/launch/tensor_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "demarc/launch/launch_write.hpp"

namespace demarc::gpu {
namespace {

using ::testing::HasSubstr;

const std::string whole_map =
    R"({"buffer": "in+32", "type": "f16", "dims": ["n", 32, 4], "strides": [128, "128*32"],
        "box": [32, 8, 1], "element_strides": [1, 2, 1], "interleave": "none", "swizzle": "64",
        "fill": "nan"})";

std::string file_with_map(const std::string& map) {
  return R"({"schema": "demarc.launch/1", "ptx": "k.ptx", "parameters": {"n": 60},
    "buffers": [{"name": "in", "bytes": 16384}],
    "launches": [{"kernel": "k", "grid": 1, "block": 32, "args": [{"tensor_map": )" +
         map + "}]}]}";
}

// `from` replaced by `to` in the map.
std::string map_refusal(const std::string& from, const std::string& to) {
  std::string map = whole_map;
  EXPECT_NE(map.find(from), std::string::npos) << from;
  map.replace(map.find(from), from.size(), to);
  const auto launch = parse_launch_json(file_with_map(map), "x.json");
  return launch ? "accepted" : launch.error().message;
}

TensorMap expected_map() {
  TensorMap map;
  map.offset = 32;
  map.type = TensorType::f16;
  map.dims = {60, 32, 4};
  map.strides = {128, 4096};
  map.box = {32, 8, 1};
  map.element_strides = {1, 2, 1};
  map.swizzled_bytes = 64;
  map.fill_nan = true;
  return map;
}

TEST(TensorMaps, of_launch_files_are_read_and_written) {
  const auto launch = parse_launch_json(file_with_map(whole_map), "x.json");
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(std::get<TensorMap>(launch->kernels[0].arguments[0]), expected_map());
  const auto again = parse_launch_json(launch_to_json(*launch).value(), "y.json");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->kernels, launch->kernels);
}

TEST(TensorMaps, say_as_little_as_they_can) {
  const auto launch = parse_launch_json(
      file_with_map(R"({"buffer": "in", "type": "u8", "dims": [64, 8, 4], "box": [16, 8, 1]})"),
      "x.json");
  ASSERT_TRUE(launch) << launch.error().message;
  TensorMap expected;
  expected.type = TensorType::u8;
  expected.dims = {64, 8, 4};
  expected.strides = {64, 512};
  expected.box = {16, 8, 1};
  expected.element_strides = {1, 1, 1};
  EXPECT_EQ(std::get<TensorMap>(launch->kernels[0].arguments[0]), expected);
}

TEST(TensorMaps, that_no_driver_makes_are_refused_by_key) {
  const std::string where = "x.json.launches[0].args[0].tensor_map";
  EXPECT_EQ(map_refusal(R"("in+32")", R"("im")"),
            where + ".buffer: there is no buffer 'im'; known are: in");
  EXPECT_EQ(map_refusal(R"("in+32")", R"("in+8")"),
            where + ".buffer: the offset 8 is not a multiple of 16");
  EXPECT_EQ(
      map_refusal("f16", "f8"),
      where +
          ".type: 'f8' is not a type of a tensor's elements; the types are u8, u16, u32, i32, "
          "u64, i64, f16, bf16, f32, f64");
  EXPECT_EQ(map_refusal(R"(["n", 32, 4])", "[]"),
            where + ".dims: a tensor has 1 to 5 dimensions, found 0");
  EXPECT_EQ(map_refusal(R"(["n", 32, 4])", "[1, 2, 3, 4, 5, 6]"),
            where + ".dims: a tensor has 1 to 5 dimensions, found 6");
  EXPECT_EQ(map_refusal("32, 4]", "0, 4]"), where + ".dims: 0 is not within 1 .. 4294967296");
  EXPECT_EQ(map_refusal("[128, ", "[130, "), where + ".strides: 130 is not a multiple of 16 bytes");
  EXPECT_EQ(map_refusal(R"("128*32")", "1099511627776"),
            where + ".strides: 1099511627776 is not within 0 .. 1099511627775");
  EXPECT_EQ(map_refusal(R"([128, "128*32"])", "[128]"),
            where + ".strides: 1 numbers, 2 were expected");
  EXPECT_EQ(map_refusal("[32, 8, 1]", "[32, 8]"), where + ".box: 2 numbers, 3 were expected");
  EXPECT_EQ(map_refusal("[32, 8, 1]", "[32, 257, 1]"), where + ".box: 257 is not within 1 .. 256");
  EXPECT_EQ(map_refusal("[32, 8, 1]", "[4, 8, 1]"),
            where + ".box: a row of 4 elements has 8 bytes, which is not a multiple of 16");
  EXPECT_EQ(map_refusal("[32, 8, 1]", "[40, 8, 1]"),
            where + ".box: a row of 80 bytes is longer than the 64 that are swizzled");
  EXPECT_EQ(map_refusal("[1, 2, 1]", "[1, 9, 1]"),
            where + ".element_strides: 9 is not within 1 .. 8");
  EXPECT_EQ(map_refusal(R"("interleave": "none")", R"("interleave": "16B")"),
            where + ".interleave: '16B' is not supported; only none is");
  EXPECT_EQ(map_refusal(R"("64")", R"("48")"),
            where + ".swizzle: '48' is none of none, 32, 64, 128");
  EXPECT_EQ(map_refusal(R"("fill": "nan")", R"("fill": "one")"),
            where + ".fill: 'one' is neither zero nor nan");
  EXPECT_EQ(map_refusal("f16", "u16"), where + ".fill: elements of u16 have no NaN");
  EXPECT_EQ(map_refusal(R"("fill": "nan")", R"("full": "nan")"), where + ": unknown key 'full'");
  EXPECT_THAT(map_refusal(R"(["n", 32, 4])", "[4294967296, 4294967296, 4294967296]"),
              HasSubstr("accepted"));
  std::string packed = whole_map;
  const std::string tensor = R"(["n", 32, 4], "strides": [128, "128*32"])";
  packed.replace(packed.find(tensor), tensor.size(), "[4294967296, 4294967296, 4294967296]");
  EXPECT_THAT(parse_launch_json(file_with_map(packed), "x.json").error().message,
              HasSubstr(".strides: 4611686018427387904 is not within"));
}

TEST(TensorMaps, are_refused_by_who_does_not_take_them) {
  const auto launch = parse_launch_json(file_with_map(whole_map), "x.json").value();
  EXPECT_EQ(refuse_tensor_maps(launch, "a study does").error().message,
            "kernel 'k': the launch gives it a tensor map, which a study does not support");
  EXPECT_TRUE(refuse_tensor_maps(Launch{}, "a study does"));
}

TEST(TensorMaps, of_a_buffer_that_is_not_there_or_ends_before_are_refused) {
  Launch launch = parse_launch_json(file_with_map(whole_map), "x.json").value();
  auto& map = std::get<TensorMap>(launch.kernels[0].arguments[0]);
  map.offset = 16400;
  EXPECT_THAT(validate(launch).error().message,
              HasSubstr("offset 16400 into buffer 'in' of 16384 bytes"));
  map.buffer = 1;
  EXPECT_THAT(validate(launch).error().message, HasSubstr("buffer 1 of 1"));
  map.buffer = 0;
  map.offset = 0;
  map.box.clear();
  EXPECT_THAT(validate(launch).error().message,
              HasSubstr("a tensor map.box: 0 numbers, 3 were expected"));
}

TEST(TensorMaps, come_out_of_their_bytes_as_they_went_in) {
  TensorMap map = expected_map();
  const auto placed = unpack_tensor_map(pack_tensor_map(map, 0x7000'0000'0020));
  ASSERT_TRUE(placed);
  map.offset = 0;
  EXPECT_EQ(placed->map, map);
  EXPECT_EQ(placed->address, 0x7000'0000'0020U);
  const Launch launch = parse_launch_json(file_with_map(whole_map), "x.json").value();
  const auto argument = pack_argument(launch.kernels[0].arguments[0], default_addresses(launch));
  const auto bytes = pack_tensor_map(map, default_base_address + 32);
  EXPECT_EQ(argument, std::vector<std::byte>(bytes.begin(), bytes.end()));
}

// Whatever is taken for a map is one that a launch file could say.
TEST(TensorMaps, bytes_that_are_none_are_not_taken_for_one) {
  EXPECT_FALSE(unpack_tensor_map(PackedTensorMap{}));
  std::mt19937 random(21);
  const PackedTensorMap good = pack_tensor_map(expected_map(), 0x7000'0000'0000);
  for (int i = 0; i < 20000; ++i) {
    PackedTensorMap bytes = good;
    for (int change = 0; change < 3; ++change)
      bytes[random() % tensor_map_bytes] = static_cast<std::byte>(random());
    const auto placed = unpack_tensor_map(bytes);
    if (placed) {
      EXPECT_TRUE(validate(placed->map, ""));
    }
  }
}

}  // namespace
}  // namespace demarc::gpu
