// cuBLASLt in libdemarc_blas.so: products, epilogues, and what is refused.
#include "blas_lt.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

TEST_F(BlasLt, multiplies_with_an_algorithm_of_the_heuristic_or_none) {
  LtAnswer answer;
  ASSERT_EQ(heuristic(answer), blas_success);
  EXPECT_EQ(answer.workspace_bytes, 0U);
  EXPECT_EQ(answer.state, blas_success);
  EXPECT_EQ(answer.waves, 1);
  const auto of_a = small_numbers(8, 1);
  const auto of_b = small_numbers(12, 2);
  const auto of_c = small_numbers(6, 3);
  for (const void* algorithm :
       {static_cast<const void*>(&answer), static_cast<const void*>(nullptr)}) {
    const auto at_c = on_card(as_type(of_c, type_f16));
    const auto at_d = on_card(as_type(std::vector<double>(6, std::nan("")), type_f16));
    ASSERT_EQ(matmul(on_card(as_type(of_a, type_f16)), on_card(as_type(of_b, type_f16)), at_c, at_d,
                     algorithm, 2),
              blas_success);
    const auto got = from_card(at_d, 12);
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        double sum = 2 * of_c[j * 2 + i];
        for (std::size_t k = 0; k < 4; ++k) sum += of_a[k * 2 + i] * of_b[j * 4 + k];
        EXPECT_EQ(number_of(got.data() + 2 * (j * 2 + i), type_f16), sum);
      }
    }
    EXPECT_EQ(number_of(from_card(at_c, 2).data(), type_f16), of_c[0]) << "C stays";
  }
  const std::uint64_t other[8] = {};
  EXPECT_EQ(matmul(0, 0, 0, 0, other), blas_not_supported);
  EXPECT_EQ(call("cublasLtMatmulAlgoGetHeuristic", handle, product, a, b, c, d, preference, 1,
                 &answer, &answer.state),
            blas_success)
      << "a handle of cuBLAS is one of cuBLASLt";
}

TEST_F(BlasLt, multiplies_batches_at_strides_and_by_arrays_of_addresses) {
  describe(type_f16, type_f16, 1, 1, 1);
  const auto a_numbers = on_card(as_type({2, 3}, type_f16));
  const auto b_numbers = on_card(as_type({4, 5}, type_f16));
  const auto addresses = [&](unsigned long long at) {
    const unsigned long long both[] = {at, at + 2};
    std::vector<std::byte> bytes(sizeof both);
    std::memcpy(bytes.data(), both, sizeof both);
    return on_card(bytes);
  };
  for (void* layout : {a, b, c, d}) {
    ASSERT_EQ(set_layout(layout, 5, 2), blas_success);
    ASSERT_EQ(set_layout(layout, 6, std::int64_t{1}), blas_success);
  }
  for (const std::uint32_t mode : {0U, 1U}) {
    for (void* layout : {a, b, c, d}) ASSERT_EQ(set_layout(layout, 8, mode), blas_success);
    const auto out = on_card(as_type({0, 0}, type_f16));
    const auto at = [&](unsigned long long numbers) {
      return mode == 0 ? numbers : addresses(numbers);
    };
    ASSERT_EQ(matmul(at(a_numbers), at(b_numbers), at(out), at(out)), blas_success);
    const auto got = from_card(out, 4);
    EXPECT_EQ(number_of(got.data(), type_f16), 8) << mode;
    EXPECT_EQ(number_of(got.data() + 2, type_f16), 15) << mode;
  }
}

TEST_F(BlasLt, has_the_epilogues_of_pytorch) {
  EXPECT_EQ(after_epilogue(1, -3, 5), -3);
  EXPECT_EQ(after_epilogue(2, -3, 5), 0);
  EXPECT_EQ(after_epilogue(2, 3, 5), 3);
  EXPECT_EQ(after_epilogue(4, -3, 5), 2);
  EXPECT_EQ(after_epilogue(6, -3, 5), 2);
  EXPECT_EQ(after_epilogue(6, -6, 5), 0);
  const auto gelu = [](double x) {
    return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
  };
  EXPECT_NEAR(after_epilogue(32, -1, 5), gelu(-1), 1e-3);
  EXPECT_NEAR(after_epilogue(36, -3, 4), gelu(1), 1e-3);
  EXPECT_EQ(after_epilogue(32, -60, 5), 0);
  EXPECT_EQ(after_epilogue(32, 60, 5), 60);
  EXPECT_TRUE(std::isnan(after_epilogue(2, NAN, 5))) << "NaN stays NaN";
}

// Every kernel does: few rows, tiles, and those without tensor cores.
TEST_F(BlasLt, adds_the_bias_of_each_row) {
  struct Case {
    int inputs;
    BlasType bias;
    std::uint64_t m, n;
    int transposed;
  };
  for (const Case& one : {Case{type_f16, type_f16, 24, 24, 0}, Case{type_f16, type_f32, 24, 24, 0},
                          Case{type_bf16, type_bf16, 24, 24, 0}, Case{type_f16, type_f16, 24, 3, 1},
                          Case{type_f16, type_f16, 3, 24, 1}, Case{type_f32, type_f32, 24, 24, 0},
                          Case{type_f32, type_f32, 24, 3, 1}, Case{type_f32, type_f32, 3, 24, 1},
                          Case{type_f16, type_f16, 21, 24, 0}}) {
    describe(one.inputs, one.inputs, one.m, one.n, 8);
    if (one.transposed != 0) {
      ASSERT_EQ(set_layout(a, 2, std::uint64_t{8}), blas_success);
      ASSERT_EQ(set_layout(a, 3, one.m), blas_success);
      ASSERT_EQ(set_layout(a, 4, std::int64_t{8}), blas_success);
    }
    ASSERT_EQ(set(3, one.transposed), blas_success);
    const auto type = static_cast<BlasType>(one.inputs);
    const auto bias = small_numbers(one.m, 4);
    ASSERT_EQ(set(epilogue_attribute, 4U), blas_success);
    ASSERT_EQ(set(bias_attribute, on_card(as_type(bias, one.bias))), blas_success);
    ASSERT_EQ(set(bias_type_attribute, int{one.bias}), blas_success);
    const std::vector<double> zeros(8 * (one.m + one.n), 0);
    const auto at = on_card(as_type(zeros, type));
    const auto out = on_card(as_type(std::vector<double>(one.m * one.n, 1), type));
    ASSERT_EQ(matmul(at, at, out, out), blas_success);
    const auto got = from_card(out, one.m * one.n * type_bytes(type));
    for (std::size_t i = 0; i < one.m * one.n; ++i) {
      ASSERT_EQ(number_of(got.data() + i * type_bytes(type), type), bias[i % one.m])
          << one.inputs << " " << one.m << " x " << one.n << " element " << i;
    }
  }
}

TEST_F(BlasLt, reads_its_scales_from_the_card_where_the_description_says_so) {
  describe(type_f16, type_f16, 1, 1, 1);
  ASSERT_EQ(set(2, 1), blas_success);
  const auto two = on_card(as_type({2}, type_f32));
  const auto three = on_card(as_type({3}, type_f16));
  const auto out = on_card(as_type({5}, type_f16));
  EXPECT_EQ(call("cublasLtMatmul", lt, product, two, three, a, three, b, two, out, c, out, d,
                 nullptr, nullptr, std::size_t{0}, nullptr),
            blas_success);
  EXPECT_EQ(number_of(from_card(out, 2).data(), type_f16), 2 * 9 + 2 * 5);
}

TEST_F(BlasLt, needs_d_always_and_c_where_there_is_a_beta) {
  describe(type_f16, type_f16, 1, 1, 1);
  const auto three = on_card(as_type({3}, type_f16));
  const auto out = on_card(as_type({std::nan("")}, type_f16));
  for (const float beta : {1.0F, 2.0F, -1.0F}) {
    EXPECT_EQ(matmul(three, three, 0, out, nullptr, beta), blas_invalid_value);
  }
  EXPECT_EQ(matmul(three, three, three, 0), blas_invalid_value);
  EXPECT_EQ(matmul(three, three, 0, out), blas_success);
  EXPECT_EQ(number_of(from_card(out, 2).data(), type_f16), 9);
}

TEST_F(BlasLt, has_no_bias_of_more_than_4294967295_bytes) {
  LtAnswer answer;
  const auto with_rows = [&](std::uint64_t rows, int bias) {
    describe(type_f16, type_f16, rows, 0, 1);
    EXPECT_EQ(set(epilogue_attribute, 4U), blas_success);
    EXPECT_EQ(set(bias_attribute, std::uint64_t{1} << 40U), blas_success);
    EXPECT_EQ(set(bias_type_attribute, bias), blas_success);
    return heuristic(answer);
  };
  constexpr std::uint64_t most = std::uint64_t{1} << 30U;
  EXPECT_EQ(with_rows(most - 1, type_f32), blas_success);
  EXPECT_EQ(with_rows(most, type_f32), blas_not_supported);
  EXPECT_EQ(with_rows(most, type_f16), blas_success);
}

TEST_F(BlasLt, refuses_by_name_what_it_does_not_compute) {
  LtAnswer answer;
  const auto refused = [&](const char* why) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(matmul(0, 0, 0, 0), blas_not_supported) << why;
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr(std::string("cublasLtMatmul was refused, because ") + why));
    EXPECT_EQ(heuristic(answer), blas_not_supported) << why;
  };
  ASSERT_EQ(set(epilogue_attribute, 36U + 128U), blas_success);
  refused("it has no epilogue 164");
  ASSERT_EQ(set(epilogue_attribute, 1U), blas_success);
  ASSERT_EQ(set(2, 2), blas_success);
  refused("alpha and beta may only be one number each");
  ASSERT_EQ(set(2, 0), blas_success);
  ASSERT_EQ(set(1, int{type_f16}), blas_success);
  refused("alpha and beta have another type than the compute type needs");
  ASSERT_EQ(set(1, int{type_f32}), blas_success);
  ASSERT_EQ(set(0, 72), blas_success);
  refused("it is not computed with the compute type 72");
  ASSERT_EQ(set(0, 68), blas_success);
  ASSERT_EQ(set_layout(b, 1, 1), blas_success);
  refused("a matrix has another order than CUBLASLT_ORDER_COL");
  ASSERT_EQ(set_layout(b, 1, 0), blas_success);
  ASSERT_EQ(set_layout(b, 8, 1U), blas_success);
  refused("the matrices have different batch modes");
  for (void* layout : {a, b, c, d}) ASSERT_EQ(set_layout(layout, 8, 2U), blas_success);
  refused("a matrix has an unknown batch mode");
  for (void* layout : {a, b, c, d}) ASSERT_EQ(set_layout(layout, 8, 0U), blas_success);
  ASSERT_EQ(set_layout(c, 0, std::uint32_t{type_f32}), blas_success);
  refused("C and D have different types");
  ASSERT_EQ(set_layout(c, 0, std::uint32_t{type_f16}), blas_success);
  ASSERT_EQ(set(epilogue_attribute, 4U), blas_success);
  ASSERT_EQ(set(bias_type_attribute, int{type_f64}), blas_success);
  refused("a bias has another type than f32, f16 and bf16");
  ASSERT_EQ(set(bias_type_attribute, int{type_f16}), blas_success);
  EXPECT_EQ(heuristic(answer), blas_success) << "the bias may come later";
  EXPECT_EQ(matmul(0, 0, 0, 0), blas_invalid_value);
  describe(type_f32, type_f32, 2, 3, 4);
  refused("a product of f32 has a bias of another type");
  describe(type_f64, type_f64, 2, 3, 4);
  ASSERT_EQ(set(0, 70), blas_success);
  ASSERT_EQ(set(1, int{type_f64}), blas_success);
  ASSERT_EQ(set(epilogue_attribute, 2U), blas_success);
  refused("products of f64 have no epilogue");
}

// The heuristic promises nothing that the product refuses.
TEST_F(BlasLt, promises_no_product_whose_matrices_are_wrong) {
  LtAnswer answer;
  ASSERT_EQ(set_layout(a, 4, std::int64_t{1}), blas_success);  // a leading dimension below the rows
  EXPECT_EQ(heuristic(answer), blas_invalid_value);
}

TEST_F(BlasLt, finds_matrices_that_do_not_fit) {
  LtAnswer answer;
  struct Change {
    void* layout;
    int attribute;
    std::uint64_t wrong;
    std::uint64_t right;
  };
  for (const Change& change : {Change{a, 2, 3, 2}, Change{b, 2, 3, 4}, Change{b, 3, 2, 3},
                               Change{c, 2, 1, 2}, Change{c, 3, 1, 3}, Change{d, 2, 1, 2}}) {
    ASSERT_EQ(set_layout(change.layout, change.attribute, change.wrong), blas_success);
    EXPECT_EQ(heuristic(answer), blas_invalid_value);
    ASSERT_EQ(set_layout(change.layout, change.attribute, change.right), blas_success);
    EXPECT_EQ(heuristic(answer), blas_success);
  }
  ASSERT_EQ(set_layout(b, 5, 2), blas_success);
  EXPECT_EQ(heuristic(answer), blas_invalid_value) << "batches";
  ASSERT_EQ(set_layout(b, 5, 1), blas_success);
  void* const described = std::exchange(a, nullptr);
  EXPECT_EQ(heuristic(answer), blas_invalid_value);
  a = described;
  int returned = 0;
  EXPECT_EQ(call("cublasLtMatmulAlgoGetHeuristic", lt, product, a, b, c, d, preference, 0, &answer,
                 &returned),
            blas_invalid_value);
  EXPECT_EQ(call("cublasLtMatmulAlgoGetHeuristic", nullptr, product, a, b, c, d, preference, 1,
                 &answer, &returned),
            blas_not_initialized);
  const std::uint64_t foreign[8] = {};
  EXPECT_EQ(call("cublasLtMatmulAlgoGetHeuristic", foreign, product, a, b, c, d, preference, 1,
                 &answer, &returned),
            blas_not_initialized);
  void* const known = std::exchange(lt, nullptr);
  EXPECT_EQ(matmul(0, 0, 0, 0), blas_not_initialized);
  lt = known;
  EXPECT_EQ(call("cublasLtMatmulAlgoGetHeuristic", lt, product, a, b, c, d, nullptr, 1, &answer,
                 &returned),
            blas_invalid_value);
}

}  // namespace
}  // namespace demarc::cuda
