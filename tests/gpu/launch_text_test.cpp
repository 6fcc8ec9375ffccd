#include <gtest/gtest.h>

#include <cstring>

#include "demarc/gpu/launch.hpp"

namespace demarc::gpu {
namespace {

LaunchText text_with(std::string arguments) {
  return {.ptx = "k.ptx",
          .kernel = "k",
          .grid = "2,3",
          .block = "64",
          .arguments = std::move(arguments)};
}

TEST(LaunchText, every_part_of_the_command_line_form_arrives) {
  const auto launch = parse_launch(
      text_with("i32:-7,u64:0xffffffffffffffff,f32:1.5,buf:1024:iota,hex:00ff,buf:64"));
  ASSERT_TRUE(launch) << launch.error().message;
  const KernelLaunch& kernel = launch->kernels.at(0);
  EXPECT_EQ(kernel.grid, (Dim3{2, 3, 1}));
  EXPECT_EQ(kernel.block, (Dim3{64, 1, 1}));
  const std::vector<Argument> expected{
      Scalar{ScalarType::i32, 0xfffffff9},           Scalar{ScalarType::u64, ~std::uint64_t{0}},
      Scalar{ScalarType::f32, 0x3fc00000},           BufferUse{0, 0},
      ByteArgument{{std::byte{0}, std::byte{0xff}}}, BufferUse{1, 0}};
  EXPECT_EQ(kernel.arguments, expected);
  EXPECT_EQ(launch->buffers.at(0).fill.kind, FillKind::iota);
  EXPECT_EQ(launch->buffers.at(1).bytes, 64U);
}

TEST(LaunchText, errors_name_the_argument_and_the_remedy) {
  const auto message = [](std::string arguments) {
    return parse_launch(text_with(std::move(arguments))).error().message;
  };
  EXPECT_EQ(
      message("i32:1,7"),
      "--args, argument 2 ('7'): expected TYPE:VALUE, as in i32:7, f32:1.5 or buf:65536:iota");
  EXPECT_EQ(message("i8:128"), "--args, argument 1 ('i8:128'): 128 does not fit i8");
  EXPECT_EQ(message("u16:65536"), "--args, argument 1 ('u16:65536'): 65536 does not fit u16");
  EXPECT_EQ(message("buf:64:sevens"),
            "--args, argument 1 ('buf:64:sevens'): 'sevens' is no content; expected zero, iota, "
            "random or @file");
  EXPECT_EQ(message("buf:0"), "buffer 'arg0': at least one byte was expected");
  EXPECT_EQ(
      message("hex:0"),
      "--args, argument 1 ('hex:0'): 'hex:' takes pairs of hexadecimal digits, as in hex:00ff");
  EXPECT_EQ(message("i32:1,"),
            "--args, argument 2 (''): expected TYPE:VALUE, as in i32:7, f32:1.5 or buf:65536:iota");
}

TEST(LaunchText, shapes_beyond_any_gpu_are_refused) {
  LaunchText text = text_with("");
  text.block = "1025";
  EXPECT_EQ(
      parse_launch(text).error().message,
      "kernel 0 ('k'): a block of 1025x1x1 threads; a GPU takes at most 1024 threads, and 64 in z");
  text.block = "32,0";
  EXPECT_EQ(parse_launch(text).error().message, "--block: '0' is not within 1 .. 2^32-1");
  text.block = "1,1,1,1";
  EXPECT_EQ(parse_launch(text).error().message, "--block: '1,1,1,1': expected X, X,Y or X,Y,Z");
}

TEST(LaunchText, buffers_are_distinct_and_aligned_to_256_bytes) {
  const auto launch = parse_launch(text_with("buf:1,buf:256,buf:257"));
  ASSERT_TRUE(launch);
  const auto addresses = default_addresses(*launch, 0x1001);
  EXPECT_EQ(addresses, (std::vector<std::uint64_t>{0x1100, 0x1300, 0x1500}));
  const auto packed = pack_argument(launch->kernels[0].arguments[1], addresses);
  std::uint64_t pointer = 0;
  ASSERT_EQ(packed.size(), 8U);
  std::memcpy(&pointer, packed.data(), 8);
  EXPECT_EQ(pointer, 0x1300U);
}

}  // namespace
}  // namespace demarc::gpu
