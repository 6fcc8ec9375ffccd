// Descriptors of a warpgroup's operands: their fields, and the addresses of rows and numbers.
#include <gtest/gtest.h>

#include "ops/warpgroup.hpp"

namespace demarc::emulate {
namespace {

// The fields of a descriptor, each in units of 16 bytes: start 3, leading 5, stride 7.
constexpr std::uint64_t descriptor_fields = 3 | 5ULL << 16 | 7ULL << 32;

TEST(Descriptors, hold_where_an_operand_lies) {
  const MatrixDescriptor plain = MatrixDescriptor::read(descriptor_fields);
  EXPECT_EQ(plain.start, 48U);
  EXPECT_EQ(plain.leading, 80U);
  EXPECT_EQ(plain.stride, 112U);
  EXPECT_EQ(plain.base_offset, 0U);
  EXPECT_EQ(plain.swizzled_bytes, 0U);
  const MatrixDescriptor most =
      MatrixDescriptor::read(0x3fff | 0x3fffULL << 16 | 0x3fffULL << 32 | 7ULL << 49);
  EXPECT_EQ(most.start, 0x3fff0U);
  EXPECT_EQ(most.leading, 0x3fff0U);
  EXPECT_EQ(most.stride, 0x3fff0U);
  EXPECT_EQ(most.base_offset, 7U);
  EXPECT_EQ(MatrixDescriptor::read(1ULL << 62).swizzled_bytes, 128U);
  EXPECT_EQ(MatrixDescriptor::read(2ULL << 62).swizzled_bytes, 64U);
  EXPECT_EQ(MatrixDescriptor::read(3ULL << 62).swizzled_bytes, 32U);
}

// Row 21 is row 5 of the third group of eight.
TEST(Descriptors, give_the_addresses_of_rows_that_go_along_k) {
  const MatrixDescriptor plain = MatrixDescriptor::read(descriptor_fields);
  EXPECT_EQ(plain.along_k(0, 0), 48U);
  EXPECT_EQ(plain.along_k(21, 0), 48U + 2 * 112 + 5 * 16);
  EXPECT_EQ(plain.along_k(21, 16), 48U + 2 * 112 + 5 * 16 + 80);
  MatrixDescriptor swizzled;
  swizzled.start = 2048;
  swizzled.leading = 80;
  swizzled.stride = 1024;
  swizzled.swizzled_bytes = 128;
  EXPECT_EQ(swizzled.along_k(0, 16), 2048U + 16);
  EXPECT_EQ(swizzled.along_k(21, 16), 2048U + 2 * 1024 + 5 * 128 + (16 ^ 5 * 16));
  swizzled.swizzled_bytes = 32;
  swizzled.stride = 256;
  EXPECT_EQ(swizzled.along_k(21, 16), 2048U + 2 * 256 + 5 * 32 + (16 ^ 16));
}

TEST(Descriptors, give_the_addresses_of_rows_that_follow_each_other) {
  const MatrixDescriptor plain = MatrixDescriptor::read(descriptor_fields);
  EXPECT_EQ(plain.along_rows(0, 0), 48U);
  EXPECT_EQ(plain.along_rows(24, 21), 48U + 3 * 112 + 2 * 80 + 5 * 16);
}

TEST(Descriptors, give_the_addresses_of_swizzled_rows_that_follow_each_other) {
  MatrixDescriptor swizzled;
  swizzled.start = 2048;
  swizzled.leading = 8192;
  swizzled.stride = 1024;
  swizzled.swizzled_bytes = 128;  // 64 rows
  EXPECT_EQ(swizzled.along_rows(8, 0), 2048U + 16);
  EXPECT_EQ(swizzled.along_rows(88, 21), 2048U + 8192 + 2 * 1024 + 5 * 128 + (3 * 16 ^ 5 * 16));
  swizzled.swizzled_bytes = 32;  // 16 rows
  EXPECT_EQ(swizzled.along_rows(24, 21), 2048U + 8192 + 2 * 1024 + 5 * 32 + (16 ^ 16));
}

TEST(WarpgroupShapes, are_of_32_bytes_along_k_and_of_columns_by_8_or_by_16) {
  using Type = MatrixType;
  for (const auto& [type, k] : std::vector<std::pair<Type, unsigned>>{{Type::f16, 16},
                                                                      {Type::bf16, 16},
                                                                      {Type::tf32, 8},
                                                                      {Type::e4m3, 32},
                                                                      {Type::e5m2, 32},
                                                                      {Type::s8, 32},
                                                                      {Type::u8, 32},
                                                                      {Type::b1, 256}}) {
    const bool whole = type == Type::s8 || type == Type::u8 || type == Type::b1;
    for (unsigned n = 0; n <= 272; ++n) {
      const bool wanted = n > 0 && n <= 256 && n % 8 == 0 && (!whole || n <= 24 || n % 16 == 0);
      EXPECT_EQ(is_warpgroup_shape(type, n, k), wanted) << n << " " << k;
      EXPECT_FALSE(is_warpgroup_shape(type, n, k / 2));
      EXPECT_FALSE(is_warpgroup_shape(type, n, k * 2));
    }
  }
  EXPECT_FALSE(is_warpgroup_shape(Type::f32, 8, 8));
}

// Of no numbers along k.
TEST(Descriptors, lead_a_product_to_the_next_instruction) {
  Program program;
  program.block = {128, 1, 1};
  program.functions.resize(1);
  program.functions[0].frame_bytes = 512;
  program.tids.resize(std::size_t{4} * 3 * warp_size);
  FramePool pool;
  Block block(program, pool);
  block.start(0, false, false);
  block.warps[1].frame = pool.take(program.functions[0]);
  WarpgroupDetails details;
  details.size = {8, 8, 0};
  details.registers = 1;
  details.steps.read_sums = [](const std::byte* const*, double*, unsigned) {};
  details.steps.write_sums = [](const double*, unsigned, std::byte* const*) {};
  details.steps.add = [](const ProductSize&, const SumRule&, const double*, const double*,
                         double*) {};
  MicroOp op;
  op.aux = &details;
  EXPECT_EQ(matrix_ops::multiply_warpgroup(block.warps[1], &op), &op + 1);
  EXPECT_FALSE(block.stopped);
}

}  // namespace
}  // namespace demarc::emulate
