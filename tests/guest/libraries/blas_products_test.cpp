// Products of libdemarc_blas.so next to sums in double precision.
#include "blas.hpp"

namespace demarc::cuda {
namespace {

struct Shape {
  int m = 0, n = 0, k = 0;
  BlasType inputs = type_f16, out = type_f16;
  int compute = 68;              // CUBLAS_COMPUTE_32F
  int ahead_a = 0, ahead_b = 0;  // likewise, of A or B alone
  int ahead = 0;                 // elements behind an aligned address
  int more = 0;                  // added to each leading dimension
  double alpha = 1, beta = 0;
  int batches = 1;
  bool arrays = false;
};

class BlasProducts : public Blas {
 protected:
  struct Side {
    std::vector<double> numbers;
    int pitch = 0;
    std::size_t of_batch = 0;
    unsigned long long at = 0;
    [[nodiscard]] double get(int operation, int batch, int row, int column) const {
      const std::size_t first = of_batch * static_cast<std::size_t>(batch);
      return operation == 0 ? numbers[first + static_cast<std::size_t>(column * pitch + row)]
                            : numbers[first + static_cast<std::size_t>(row * pitch + column)];
    }
  };
  Side side(int rows, int columns, BlasType type, const Shape& shape, std::uint32_t seed) {
    Side made;
    made.pitch = rows + shape.more;
    made.of_batch = static_cast<std::size_t>(made.pitch * columns);
    made.numbers = small_numbers(made.of_batch * static_cast<std::size_t>(shape.batches), seed);
    made.at = on_card(as_type(made.numbers, type),
                      static_cast<std::size_t>(shape.ahead) * type_bytes(type));
    return made;
  }
  unsigned long long addresses(const Side& of, BlasType type, int batches) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(batches) * 8);
    for (int i = 0; i < batches; ++i) {
      const unsigned long long at =
          of.at + of.of_batch * static_cast<std::size_t>(i) * type_bytes(type);
      std::memcpy(bytes.data() + 8 * i, &at, 8);
    }
    return on_card(bytes);
  }
  // The worst error of a product by GemmEx, GemmStridedBatchedEx or GemmBatchedEx.
  void expect_right(int ta, int tb, const Shape& s) {
    Shape of_a = s;
    of_a.ahead += s.ahead_a;
    const Side a = side(ta == 0 ? s.m : s.k, ta == 0 ? s.k : s.m, s.inputs, of_a, 1);
    Shape of_b = s;
    of_b.ahead += s.ahead_b;
    const Side b = side(tb == 0 ? s.k : s.n, tb == 0 ? s.n : s.k, s.inputs, of_b, 2);
    Side c = side(s.m, s.n, s.out, s, 3);
    if (s.beta == 0) {
      const std::vector<double> nan(c.numbers.size(), std::nan(""));
      c.at = on_card(as_type(nan, s.out), static_cast<std::size_t>(s.ahead) * type_bytes(s.out));
    }
    const bool half = s.compute == 64 || s.compute == 65;
    const auto scale = [&](double number) {
      return as_type({number}, half ? type_f16 : s.inputs == type_f64 ? type_f64 : type_f32);
    };
    const auto alpha = scale(s.alpha);
    const auto beta = scale(s.beta);
    const void* const to_alpha = alpha.data();
    const void* const to_beta = beta.data();
    BlasCode code = -1;
    if (s.arrays) {
      code = call("cublasGemmBatchedEx", handle, ta, tb, s.m, s.n, s.k, to_alpha,
                  addresses(a, s.inputs, s.batches), int{s.inputs}, a.pitch,
                  addresses(b, s.inputs, s.batches), int{s.inputs}, b.pitch, to_beta,
                  addresses(c, s.out, s.batches), int{s.out}, c.pitch, s.batches, s.compute, -1);
    } else if (s.batches > 1) {
      code = call("cublasGemmStridedBatchedEx", handle, ta, tb, s.m, s.n, s.k, to_alpha, a.at,
                  int{s.inputs}, a.pitch, static_cast<long long>(a.of_batch), b.at, int{s.inputs},
                  b.pitch, static_cast<long long>(b.of_batch), to_beta, c.at, int{s.out}, c.pitch,
                  static_cast<long long>(c.of_batch), s.batches, s.compute, -1);
    } else {
      code = call("cublasGemmEx", handle, ta, tb, s.m, s.n, s.k, to_alpha, a.at, int{s.inputs},
                  a.pitch, b.at, int{s.inputs}, b.pitch, to_beta, c.at, int{s.out}, c.pitch,
                  s.compute, -1);
    }
    ASSERT_EQ(code, blas_success);
    const auto made = from_card(c.at, c.numbers.size() * type_bytes(s.out));
    for (int batch = 0; batch < s.batches; ++batch) {
      for (int column = 0; column < s.n; ++column) {
        for (int row = 0; row < s.m; ++row) {
          double sum = 0;
          for (int i = 0; i < s.k; ++i)
            sum += a.get(ta, batch, row, i) * b.get(tb, batch, i, column);
          const double right =
              s.alpha * sum + (s.beta == 0 ? 0 : s.beta * c.get(0, batch, row, column));
          const std::size_t at = c.of_batch * static_cast<std::size_t>(batch) +
                                 static_cast<std::size_t>(column * c.pitch + row);
          const double got = number_of(made.data() + at * type_bytes(s.out), s.out);
          const double allowed = s.out == type_f16 ? 1e-3 : s.out == type_bf16 ? 8e-3 : 1e-6;
          ASSERT_LE(std::abs(got - right), allowed * std::max(1.0, std::abs(right)))
              << "row " << row << ", column " << column << ", batch " << batch << ", operations "
              << ta << tb << ": " << got << " for " << right;
        }
      }
    }
  }
  void expect_right(const Shape& shape) {
    for (const int ta : {0, 1}) {
      for (const int tb : {0, 1}) {
        expect_right(ta, tb, shape);
        if (HasFatalFailure()) return;
      }
    }
  }
};

TEST_F(BlasProducts, of_halves_are_right_for_all_transpositions) {
  expect_right({.m = 136, .n = 144, .k = 200});
  expect_right({.m = 136, .n = 40, .k = 72, .out = type_f32, .alpha = 2, .beta = -3});
  expect_right({.m = 40, .n = 24, .k = 72, .inputs = type_bf16, .out = type_bf16, .beta = 1});
  expect_right({.m = 40, .n = 24, .k = 72, .inputs = type_bf16, .out = type_f32});
  expect_right({.m = 40, .n = 24, .k = 72, .compute = 64, .alpha = 0.5, .beta = 2});
}

// Pieces at the ends of rows, of columns and of the depth.
TEST_F(BlasProducts, of_odd_sizes_and_at_any_alignment_are_right) {
  expect_right({.m = 131, .n = 35, .k = 67, .more = 5});
  expect_right({.m = 33, .n = 21, .k = 19, .out = type_f32, .ahead = 1, .beta = 2});
  expect_right(
      {.m = 33, .n = 21, .k = 19, .inputs = type_f32, .out = type_f32, .compute = 77, .ahead = 1});
  expect_right({.m = 20, .n = 28, .k = 13, .ahead = 8, .more = 4});
  expect_right({.m = 37, .n = 29, .k = 130, .ahead = 3, .more = 3, .beta = 1});
}

TEST_F(BlasProducts, of_f32_and_f64_are_right_for_all_transpositions) {
  for (const int compute : {68, 69, 77}) {
    expect_right({.m = 130,
                  .n = 36,
                  .k = 44,
                  .inputs = type_f32,
                  .out = type_f32,
                  .compute = compute,
                  .alpha = 2,
                  .beta = -1});
  }
  expect_right({.m = 20, .n = 140, .k = 35, .inputs = type_f32, .out = type_f32, .more = 1});
  expect_right({.m = 67,
                .n = 66,
                .k = 35,
                .inputs = type_f64,
                .out = type_f64,
                .compute = 70,
                .alpha = 2,
                .beta = -1});
  expect_right(
      {.m = 12, .n = 18, .k = 22, .inputs = type_f64, .out = type_f64, .compute = 71, .more = 2});
}

TEST_F(BlasProducts, of_few_rows_or_columns_are_right) {
  for (const int few : {1, 8, 9, 17}) {
    for (const BlasType inputs : {type_f16, type_bf16}) {
      expect_right({.m = 72, .n = few, .k = 104, .inputs = inputs, .out = inputs, .beta = 2});
      expect_right({.m = few, .n = 72, .k = 104, .inputs = inputs, .out = type_f32});
    }
    expect_right({.m = 72, .n = few, .k = 60, .inputs = type_f32, .out = type_f32, .compute = 77});
  }
  for (const int few : {1, 4, 5, 17}) {
    expect_right({.m = 72, .n = few, .k = 60, .inputs = type_f32, .out = type_f32, .beta = -1});
    expect_right({.m = few, .n = 24, .k = 700, .inputs = type_f32, .out = type_f32});
  }
  // Depths that end within a piece, and wide blocks.
  expect_right({.m = 50, .n = 3, .k = 77, .inputs = type_f32, .out = type_f32, .more = 3});
  expect_right({.m = 50, .n = 3, .k = 77, .more = 3});
  expect_right({.m = 600, .n = 12, .k = 40});
  expect_right(0, 0, {.m = 600, .n = 5, .k = 520});
  expect_right(1, 0, {.m = 600, .n = 5, .k = 520});
}

TEST_F(BlasProducts, of_batches_are_right) {
  for (const bool arrays : {false, true}) {
    expect_right({.m = 24, .n = 40, .k = 48, .beta = 1, .batches = 3, .arrays = arrays});
    expect_right({.m = 24, .n = 8, .k = 48, .out = type_f32, .batches = 3, .arrays = arrays});
    expect_right({.m = 13, .n = 11, .k = 9, .ahead = 1, .batches = 2, .arrays = arrays});
    expect_right({.m = 24,
                  .n = 20,
                  .k = 12,
                  .inputs = type_f32,
                  .out = type_f32,
                  .batches = 2,
                  .arrays = arrays});
    expect_right({.m = 24,
                  .n = 20,
                  .k = 12,
                  .inputs = type_f64,
                  .out = type_f64,
                  .compute = 70,
                  .batches = 2,
                  .arrays = arrays});
  }
}

// The stand-in's card has few SMs, so that small products have a large tile for each.
TEST_F(BlasProducts, by_large_tiles_are_right) {
  expect_right({.m = 262, .n = 132, .k = 40, .batches = 4});
  expect_right(1, 0,
               {.m = 262, .n = 132, .k = 40, .inputs = type_bf16, .out = type_bf16, .batches = 4});
  expect_right(0, 1,
               {.m = 261,
                .n = 133,
                .k = 19,
                .inputs = type_f32,
                .out = type_f32,
                .compute = 77,
                .ahead = 1,
                .batches = 6});
}

// What would be misaligned goes another way.
TEST_F(BlasProducts, of_few_rows_at_any_alignment_are_right) {
  for (const BlasType type : {type_f16, type_f32}) {
    expect_right({.m = 40, .n = 3, .k = 48, .inputs = type, .out = type, .ahead = 1});
    expect_right({.m = 40, .n = 3, .k = 48, .inputs = type, .out = type, .more = 1});
    expect_right({.m = 3, .n = 40, .k = 47, .inputs = type, .out = type, .batches = 2});
    expect_right({.m = 40, .n = 3, .k = 48, .inputs = type, .out = type, .ahead_a = 1});
    expect_right({.m = 40, .n = 3, .k = 48, .inputs = type, .out = type, .ahead_b = 1});
    expect_right({.m = 24,
                  .n = 3,
                  .k = 8,
                  .inputs = type,
                  .out = type,
                  .ahead = 1,
                  .batches = 2,
                  .arrays = true});
  }
}

// A grid has 65535 of them at most.
TEST_F(BlasProducts, have_more_batches_than_a_grid_has) {
  constexpr std::size_t batches = 65535 + 2;
  const auto numbers = on_card(as_type({1, 1, 1, 1, 1, 1, 1, 1}, type_f16));
  const auto out = on_card(as_type(std::vector<double>(batches, 3), type_f16));
  const float zero = 0;
  const float two = 2;
  EXPECT_EQ(call("cublasGemmStridedBatchedEx", handle, 1, 0, 1, 1, 8, &zero, numbers, int{type_f16},
                 8, 0LL, numbers, int{type_f16}, 8, 0LL, &two, out, int{type_f16}, 1, 1LL,
                 static_cast<int>(batches), 68, -1),
            blas_success);
  const auto got = from_card(out, batches * 2);
  for (std::size_t i = 0; i < batches; ++i) {
    ASSERT_EQ(number_of(got.data() + 2 * i, type_f16), 6) << i;
  }
}

// A module may be loaded while a stream is captured, and nothing is allocated.
TEST_F(BlasProducts, can_be_captured_into_graphs) {
  void* stream = nullptr;
  void* graph = nullptr;
  void* executable = nullptr;
  ASSERT_EQ(
      test::fake_symbol<int(void**, unsigned, int)>("cuStreamCreateWithPriority")(&stream, 1U, 0),
      0);
  ASSERT_EQ(call("cublasSetStream_v2", handle, stream), blas_success);
  const auto three = on_card(as_type({3}, type_bf16));
  const auto out = on_card(as_type({0}, type_f32));
  const auto other = on_card(as_type({0}, type_f32));
  const auto scale = on_card(as_type({1}, type_f32));
  ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 1), blas_success);
  ASSERT_EQ(test::fake_symbol<int(void*, int)>("cuStreamBeginCapture_v2")(stream, 0), 0);
  EXPECT_EQ(call("cublasGemmEx", handle, 0, 0, 1, 1, 1, scale, three, int{type_bf16}, 1, three,
                 int{type_bf16}, 1, scale, out, int{type_f32}, 1, 68, -1),
            blas_success);
  EXPECT_EQ(
      call("cublasSgemm_v2", handle, 0, 0, 1, 1, 1, scale, scale, 1, scale, 1, scale, other, 1),
      blas_success);
  ASSERT_EQ(test::fake_symbol<int(void*, void**)>("cuStreamEndCapture")(stream, &graph), 0);
  EXPECT_EQ(number_of(from_card(out, 4).data(), type_f32), 0);
  ASSERT_EQ(test::fake_symbol<int(void**, void*, unsigned long long)>(
                "cuGraphInstantiateWithFlags")(&executable, graph, 0ULL),
            0);
  // Each launch reads the scales as they are then.
  double sum = 0;
  double other_sum = 0;
  for (const double now : {1, 2}) {
    const auto bytes = as_type({now}, type_f32);
    ASSERT_EQ(test::fake_symbol<int(unsigned long long, const void*, std::size_t)>(
                  "cuMemcpyHtoD_v2")(scale, bytes.data(), 4),
              0);
    ASSERT_EQ(test::fake_symbol<int(void*, void*)>("cuGraphLaunch")(executable, stream), 0);
    ASSERT_EQ(test::fake_symbol<int(void*)>("cuStreamSynchronize")(stream), 0);
    sum = now * 9 + now * sum;
    other_sum = now * now * now + now * other_sum;
    EXPECT_EQ(number_of(from_card(out, 4).data(), type_f32), sum);
    EXPECT_EQ(number_of(from_card(other, 4).data(), type_f32), other_sum);
  }
  EXPECT_EQ(test::fake_symbol<int(void*)>("cuGraphExecDestroy")(executable), 0);
  EXPECT_EQ(test::fake_symbol<int(void*)>("cuGraphDestroy")(graph), 0);
  ASSERT_EQ(call("cublasSetStream_v2", handle, nullptr), blas_success);
  EXPECT_EQ(test::fake_symbol<int(void*)>("cuStreamDestroy_v2")(stream), 0);
}

// f32 keeps what tf32 rounds away.
class BlasRounding : public BlasProducts {
 protected:
  double ran(int compute, int mode) {
    EXPECT_EQ(call("cublasSetMathMode", handle, mode), blas_success);
    const auto x = on_card(as_type({exact}, type_f32));
    const auto one = on_card(as_type({1}, type_f32));
    const auto out = on_card(as_type({0}, type_f32));
    const float alpha = 1;
    const float beta = 0;
    EXPECT_EQ(call("cublasGemmEx", handle, 0, 0, 1, 1, 1, &alpha, x, int{type_f32}, 1, one,
                   int{type_f32}, 1, &beta, out, int{type_f32}, 1, compute, -1),
              blas_success);
    return number_of(from_card(out, 4).data(), type_f32);
  }
  static constexpr double exact = 1 + 0x1p-20;
  static constexpr int tf32_math = 3;
  static constexpr int flag = 16;  // CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
};

TEST_F(BlasRounding, to_tf32_is_where_the_program_allows_it_and_nowhere_else) {
  EXPECT_EQ(ran(68, 0), exact);
  EXPECT_EQ(ran(68, 2), exact);
  EXPECT_EQ(ran(69, tf32_math), exact);
  EXPECT_EQ(ran(68, tf32_math), 1);
  EXPECT_EQ(ran(68, tf32_math + flag), 1);
  EXPECT_EQ(ran(77, 0), 1);
}

// As NVIDIA's libraries, which read it once.
TEST_F(BlasRounding, to_tf32_is_nowhere_where_the_user_has_turned_it_off) {
  for (const auto& [value, rounded] :
       {std::pair{"0", false}, std::pair{"1", true}, std::pair{"", true}}) {
    EXPECT_EXIT(
        {
          ::setenv("NVIDIA_TF32_OVERRIDE", value, 1);
          DEMAND(ran(77, 0) == (rounded ? 1 : exact));
          DEMAND(ran(68, tf32_math) == (rounded ? 1 : exact));
          DEMAND(ran(68, 0) == exact);
          std::_Exit(0);
        },
        testing::ExitedWithCode(0), "")
        << value;
  }
}

TEST_F(BlasProducts, read_their_scales_from_the_card_where_the_handle_says_so) {
  ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 1), blas_success);
  const auto three = on_card(as_type({3}, type_f32));
  const auto two = on_card(as_type({2}, type_f32));
  const auto out = on_card(as_type({5}, type_f32));
  EXPECT_EQ(call("cublasSgemm_v2", handle, 0, 0, 1, 1, 1, two, three, 1, three, 1, two, out, 1),
            blas_success);
  EXPECT_EQ(number_of(from_card(out, 4).data(), type_f32), 2 * 9 + 2 * 5);
  const auto half = on_card(as_type({0.5}, type_f16));
  const auto four = on_card(as_type({4}, type_f16));
  const auto other = on_card(as_type({6}, type_f16));
  EXPECT_EQ(call("cublasHgemm", handle, 0, 0, 1, 1, 1, half, four, 1, four, 1, half, other, 1),
            blas_success);
  EXPECT_EQ(number_of(from_card(other, 2).data(), type_f16), 0.5 * 16 + 0.5 * 6);
}

// As BLAS has it: without alpha neither A nor B is read, and without a depth the sum is 0.
TEST_F(BlasProducts, without_alpha_or_depth_scale_what_is_there) {
  const auto nan = on_card(as_type({std::nan("")}, type_f32));
  const auto out = on_card(as_type({5}, type_f32));
  const float zero = 0;
  const float two = 2;
  EXPECT_EQ(call("cublasSgemm_v2", handle, 0, 0, 1, 1, 1, &zero, nan, 1, nan, 1, &two, out, 1),
            blas_success);
  EXPECT_EQ(number_of(from_card(out, 4).data(), type_f32), 10);
  EXPECT_EQ(call("cublasSgemm_v2", handle, 0, 0, 1, 1, 0, &two, nan, 1, nan, 1, &two, out, 1),
            blas_success);
  EXPECT_EQ(number_of(from_card(out, 4).data(), type_f32), 20);
  EXPECT_EQ(call("cublasSgemm_v2", handle, 0, 0, 0, 1, 1, &two, nan, 1, nan, 1, &two, out, 1),
            blas_success)
      << "nothing to do";
  EXPECT_EQ(call("cublasSgemm_v2", handle, 0, 0, 1, 0, 1, &two, nan, 1, nan, 1, &two, out, 1),
            blas_success)
      << "nothing to do";
  EXPECT_EQ(call("cublasSgemmStridedBatched", handle, 0, 0, 1, 1, 1, &two, nan, 1, 0LL, nan, 1, 0LL,
                 &two, out, 1, 0LL, 0),
            blas_success)
      << "nothing to do";
  EXPECT_EQ(number_of(from_card(out, 4).data(), type_f32), 20);
  const auto half_nan = on_card(as_type({std::nan("")}, type_f16));
  const auto half = on_card(as_type({5}, type_f16));
  const float one = 1;
  for (const int n : {1, 20}) {
    const auto many = on_card(as_type(std::vector<double>(400, std::nan("")), type_f16));
    const auto of_c = on_card(as_type(std::vector<double>(400, 3), type_f16));
    EXPECT_EQ(call("cublasGemmEx", handle, 1, 0, 20, n, 20, &zero, many, int{type_f16}, 20, many,
                   int{type_f16}, 20, &one, of_c, int{type_f16}, 20, 68, -1),
              blas_success);
    EXPECT_EQ(number_of(from_card(of_c, 2).data(), type_f16), 3);
  }
  EXPECT_EQ(call("cublasSgemmEx", handle, 0, 0, 1, 1, 1, &zero, half_nan, int{type_f16}, 1,
                 half_nan, int{type_f16}, 1, &one, half, int{type_f16}, 1),
            blas_success);
  EXPECT_EQ(number_of(from_card(half, 2).data(), type_f16), 5);
}

TEST_F(BlasProducts, have_a_form_of_64_bit_sizes_and_one_per_type) {
  using Size = std::int64_t;
  const auto two = on_card(as_type({2}, type_f64));
  const auto out = on_card(as_type({0}, type_f64));
  const double one = 1;
  const double zero = 0;
  EXPECT_EQ(call("cublasDgemm_v2_64", handle, 0, 0, Size{1}, Size{1}, Size{1}, &one, two, Size{1},
                 two, Size{1}, &zero, out, Size{1}),
            blas_success);
  EXPECT_EQ(number_of(from_card(out, 8).data(), type_f64), 4);
  EXPECT_EQ(call("cublasDgemmStridedBatched", handle, 0, 0, 1, 1, 1, &one, two, 1, 0LL, two, 1, 0LL,
                 &one, out, 1, 0LL, 1),
            blas_success);
  EXPECT_EQ(number_of(from_card(out, 8).data(), type_f64), 8);
}

}  // namespace
}  // namespace demarc::cuda
