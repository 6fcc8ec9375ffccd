// Tests launches that are written on a command line, and what is refused there.
#include <gtest/gtest.h>

#include <cstring>

#include "demarc/launch/launch.hpp"

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

TEST(LaunchText, clusters_have_a_size_where_one_is_given) {
  LaunchText text = text_with("");
  EXPECT_FALSE(parse_launch(text)->kernels.at(0).cluster);
  text.cluster = "2,3";
  EXPECT_EQ(parse_launch(text)->kernels.at(0).cluster, (Dim3{2, 3, 1}));
  text.cluster = "0";
  EXPECT_EQ(parse_launch(text).error().message, "--cluster: '0' is not within 1 .. 2^32-1");
  text.cluster = "17";
  EXPECT_EQ(parse_launch(text).error().message,
            "kernel 0 ('k'): a cluster of 17x1x1 blocks; a GPU takes 1 to 16");
}

TEST(LaunchText, a_buffers_bytes_may_have_a_unit) {
  const auto launch = parse_launch(text_with("buf:4M,buf:2KiB:iota:f32"));
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->buffers.at(0).bytes, 4U << 20U);
  EXPECT_EQ(launch->buffers.at(1).bytes, 2048U);
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
            "--args, argument 1 ('buf:64:sevens'): 'sevens' is not a content; expected zero, iota, "
            "random or @file");
  EXPECT_EQ(message("buf:4MB"),
            "--args, argument 1 ('buf:4MB'): '4MB' is not a number of bytes; write it as 4096, "
            "64K, 512 MiB or 16GiB");
  EXPECT_EQ(message("buf:0"), "buffer 'arg0': at least one byte was expected");
  EXPECT_EQ(
      message("hex:0"),
      "--args, argument 1 ('hex:0'): 'hex:' takes pairs of hexadecimal digits, as in hex:00ff");
  EXPECT_EQ(message("i32:1,"),
            "--args, argument 2 (''): expected TYPE:VALUE, as in i32:7, f32:1.5 or buf:65536:iota");
}

TEST(LaunchText, a_variable_is_a_value_bytes_or_a_content) {
  const auto value = parse_variable("gain=f32:1.5").value();
  EXPECT_EQ(value.name, "gain");
  EXPECT_EQ(value.fill.kind, FillKind::bytes);
  EXPECT_EQ(value.fill.bytes,
            (std::vector<std::byte>{std::byte{0}, std::byte{0}, std::byte{0xc0}, std::byte{0x3f}}));
  EXPECT_EQ(parse_variable("s=hex:00ff")->fill.bytes,
            (std::vector<std::byte>{std::byte{0}, std::byte{0xff}}));
  EXPECT_EQ(parse_variable("count=u8:7")->fill.bytes, std::vector<std::byte>{std::byte{7}});
  const auto file = parse_variable("taps=@a=b.npy:f32").value();
  EXPECT_EQ(file.fill.file, "a=b.npy");
  EXPECT_EQ(file.element, ScalarType::f32);
  EXPECT_EQ(parse_variable("taps=iota")->fill.kind, FillKind::iota);
  EXPECT_EQ(parse_variable("taps=iota")->element, ScalarType::u32);
}

TEST(LaunchText, a_variable_that_is_none_is_refused) {
  const auto message = [](std::string_view text) { return parse_variable(text).error().message; };
  for (const char* nameless : {"taps", "=i32:1", ""}) {
    EXPECT_EQ(
        message(nameless),
        fmt::format("--variable {}: NAME=VALUE was expected, as in taps=@taps.npy:f32", nameless));
  }
  EXPECT_EQ(message("a="),
            "--variable a=: expected TYPE:VALUE, hex:00ff or zero|iota|random|@file[:ELEMENT]");
  EXPECT_EQ(message("a=iota:f32:1"),
            "--variable a=iota:f32:1: expected TYPE:VALUE, hex:00ff or "
            "zero|iota|random|@file[:ELEMENT]");
  EXPECT_EQ(message("a=i8:300"), "--variable a=i8:300: 300 does not fit i8");
  EXPECT_EQ(message("a=hex:0"),
            "--variable a=hex:0: 'hex:' takes pairs of hexadecimal digits, as in hex:00ff");
  EXPECT_EQ(message("a=f33:1"),
            "--variable a=f33:1: 'f33' is not a content; expected zero, iota, random or @file");
  EXPECT_EQ(message("a=iota:f33").substr(0, 46), "--variable a=iota:f33: 'f33' is not a type; th");
}

TEST(LaunchText, nan_infinity_and_any_bits_can_be_given_to_a_kernel) {
  const auto bits = [](const std::string& argument) -> std::uint64_t {
    const auto launch = parse_launch(text_with(argument));
    EXPECT_TRUE(launch) << argument;
    return launch ? std::get<Scalar>(launch->kernels[0].arguments.at(0)).bits : 1;
  };
  EXPECT_EQ(bits("f32:nan"), 0x7fc00000U);
  EXPECT_EQ(bits("f32:-nan"), 0xffc00000U);
  EXPECT_EQ(bits("f32:inf"), 0x7f800000U);
  EXPECT_EQ(bits("f32:-inf"), 0xff800000U);
  EXPECT_EQ(bits("f32:-0"), 0x80000000U);
  EXPECT_EQ(bits("f32:0f7fc00001"), 0x7fc00001U);
  EXPECT_EQ(bits("f64:nan"), 0x7ff8000000000000U);
  EXPECT_EQ(bits("f64:-inf"), 0xfff0000000000000U);
  EXPECT_EQ(bits("f64:0D7ff8000000000001"), 0x7ff8000000000001U);
  EXPECT_EQ(bits("f16:nan"), 0x7e00U);
  EXPECT_EQ(bits("f16:-inf"), 0xfc00U);
}

TEST(LaunchText, what_is_no_number_of_the_type_is_refused) {
  const auto message = [](std::string arguments) {
    return parse_launch(text_with(std::move(arguments))).error().message;
  };
  const std::string cure =
      "of f32; decimals, nan, inf and -inf are, and all bits as PTX writes them (0f7fc00000)";
  for (const std::string wrong : {"0f7fc0000", "0f7fc000000", "0d7fc00000", "0f7fc0000g",
                                  "0f-fc00000", "1f7fc00000", "nano", "--inf", "", "1e99999"}) {
    EXPECT_EQ(message("f32:" + wrong),
              "--args, argument 1 ('f32:" + wrong + "'): '" + wrong + "' is not a number " + cure);
  }
  EXPECT_EQ(message("f32:1e39"),
            "--args, argument 1 ('f32:1e39'): 1e39 does not fit f32; infinity is written inf");
  EXPECT_EQ(message("f16:65520"),
            "--args, argument 1 ('f16:65520'): 65520 does not fit f16; infinity is written inf");
  EXPECT_EQ(message("f16:0f7fc00000"),
            "--args, argument 1 ('f16:0f7fc00000'): '0f7fc00000' is not a number of f16; "
            "decimals, nan, inf and -inf are");
  EXPECT_EQ(message("i32:nan"), "--args, argument 1 ('i32:nan'): 'nan' is not a whole number");
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
