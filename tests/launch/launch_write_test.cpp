// Launches written as launch files.
#include "demarc/launch/launch_write.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace demarc::gpu {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view every_key = R"({
  "schema": "demarc.launch/1", "name": "all", "summary": "one of each", "source": "here",
  "groups": ["a", "b"], "ptx": "k.ptx", "seed": 9,
  "buffers": [
    {"name": "zeros", "bytes": 64},
    {"name": "counts", "bytes": 64, "fill": "iota", "output": true, "memory": "host", "address": 4096},
    {"name": "any", "bytes": 64, "element": "i32", "fill": "random", "low": -5, "high": 7},
    {"name": "floats", "bytes": 64, "element": "f32", "fill": [1.5, "nan", "-inf", 3]},
    {"name": "words", "bytes": 64, "element": "u64", "fill": [4611686018427387903, 0]},
    {"name": "file", "bytes": 64, "fill": "@data.bin"},
    {"name": "chain", "bytes": 64, "fill": {"pointers": "zeros", "stride": 8}},
    {"name": "graph", "bytes": 64, "fill": {"generator": "permutation", "elements": 16}}],
  "variables": [
    {"name": "taps", "element": "f32", "fill": [0.25, 0.5]},
    {"name": "table", "fill": "@table.npy"}, {"name": "settings", "fill": "hex:0a0b"}],
  "launches": [
    {"kernel": "k", "grid": [3, 2, 1], "block": 64, "cluster": [3, 2], "shared": 256,
     "args": ["i32:-7", "u64:9007199254740993", "i64:-9007199254740993", "u8:255", "f32:0f3dcccccd",
              "f64:0d3fb999999999999a", "f16:0.5", "buf:any+16", "buf:zeros", "hex:00ff"]},
    {"repeat": "i", "times": 3, "launches": [{"kernel": "k", "grid": 1, "block": 1, "args": []}]}],
  "check": {"reference": "vecadd", "absolute": 0.5, "relative": 0.25}})";

TEST(LaunchWrite, what_a_launch_file_says_is_written_and_read_back) {
  auto launch = parse_launch_json(every_key, "x.json");
  ASSERT_TRUE(launch) << launch.error().message;
  const auto text = launch_to_json(*launch);
  ASSERT_TRUE(text) << text.error().message;
  const auto again = parse_launch_json(*text, "y.json");
  ASSERT_TRUE(again) << again.error().message << *text;
  // A nan differs from itself.
  Launch expected = *launch;
  Launch found = *again;
  EXPECT_TRUE(std::isnan(expected.buffers[3].fill.values[1]));
  EXPECT_TRUE(std::isnan(found.buffers[3].fill.values[1]));
  expected.buffers[3].fill.values[1] = found.buffers[3].fill.values[1] = 0;
  EXPECT_EQ(found, expected) << *text;
  EXPECT_THAT(*text, HasSubstr("\"times\": 3"));
}

TEST(LaunchWrite, files_are_named_as_they_lie_beside_the_launch_file) {
  auto launch = parse_launch_json(every_key, "x.json", "some/where").value();
  EXPECT_EQ(launch.ptx, "some/where/k.ptx");
  const auto text = launch_to_json(launch).value();
  EXPECT_THAT(text, HasSubstr("\"k.ptx\""));
  EXPECT_THAT(text, HasSubstr("\"@data.bin\""));
  launch.ptx = "bundled:vecadd";
  EXPECT_THAT(launch_to_json(launch).value(), HasSubstr("\"bundled:vecadd\""));
}

TEST(LaunchWrite, a_check_against_files_is_written_and_read_back) {
  std::string text(every_key);
  const std::string reference = R"("reference": "vecadd")";
  text.replace(text.find(reference), reference.size(), R"("file": "counts.npy")");
  const auto launch = parse_launch_json(text, "x.json", "some/where");
  ASSERT_TRUE(launch) << launch.error().message;
  const auto again = parse_launch_json(launch_to_json(*launch).value(), "y.json", "some/where");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->check, launch->check);
  EXPECT_EQ(again->check.files.at(1), "some/where/counts.npy");
}

TEST(LaunchWrite, what_a_launch_file_cannot_say_is_refused_by_name) {
  Launch launch;
  launch.ptx = "k.ptx";
  KernelLaunch kernel;
  kernel.kernel = "k";
  launch.kernels = {kernel};
  launch.kernels[0].arguments = {Scalar{ScalarType::u64, std::uint64_t{1} << 63U}};
  const auto large = launch_to_json(launch);
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().message, HasSubstr("argument 1 of 'k' is 9223372036854775808"));
  launch.kernels[0].arguments = {Scalar{ScalarType::u64, (std::uint64_t{1} << 63U) - 1}};
  EXPECT_TRUE(launch_to_json(launch));
}

}  // namespace
}  // namespace demarc::gpu
