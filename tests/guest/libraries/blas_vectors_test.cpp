// Vectors, and a matrix with a vector, of libdemarc_blas.so next to sums in double precision.
#include <thread>

#include "blas.hpp"

namespace demarc::cuda {
namespace {

class BlasVectors : public Blas {
 protected:
  // `count` numbers, `step` apart, as BLAS has them: a negative step begins at the end.
  static std::vector<double> taken(const std::vector<double>& from, int count, int step) {
    std::vector<double> numbers;
    const int first = step < 0 ? (1 - count) * step : 0;
    for (int i = 0; i < count; ++i)
      numbers.push_back(from[static_cast<std::size_t>(first + i * step)]);
    return numbers;
  }
  std::vector<double> read(unsigned long long at, std::size_t count, BlasType type) {
    const auto bytes = from_card(at, count * type_bytes(type));
    std::vector<double> numbers;
    for (std::size_t i = 0; i < count; ++i)
      numbers.push_back(number_of(bytes.data() + i * type_bytes(type), type));
    return numbers;
  }
  static std::size_t extent(int count, int step) {
    return static_cast<std::size_t>((count - 1) * std::abs(step) + 1);
  }
  static std::string name_of(const char* rest, BlasType type) {
    return std::string("cublas") + (type == type_f32 ? "S" : "D") + rest + "_v2";
  }
  static const void* number(double value, BlasType type) {
    static float single;
    static double twice;
    single = static_cast<float>(value);
    twice = value;
    return type == type_f32 ? static_cast<const void*>(&single) : &twice;
  }
  void expect_gemv(BlasType type, int operation, int m, int n, int pitch, int step_x, int step_y,
                   int ahead, double beta) {
    const auto a = small_numbers(static_cast<std::size_t>(pitch * n), 1);
    const int of_x = operation == 0 ? n : m;
    const int of_y = operation == 0 ? m : n;
    const auto x = small_numbers(extent(of_x, step_x), 2);
    auto y = small_numbers(extent(of_y, step_y), 3);
    const auto before = taken(y, of_y, step_y);
    if (beta == 0) y.assign(y.size(), std::nan(""));
    const std::size_t bytes = static_cast<std::size_t>(ahead) * type_bytes(type);
    const auto at = on_card(as_type(y, type), bytes);
    const auto single = static_cast<float>(beta);
    const float two = 2;
    const double double_two = 2;
    const void* const to_alpha = type == type_f32 ? static_cast<const void*>(&two) : &double_two;
    const void* const to_beta = type == type_f32 ? static_cast<const void*>(&single) : &beta;
    ASSERT_EQ(call(name_of("gemv", type).c_str(), handle, operation, m, n, to_alpha,
                   on_card(as_type(a, type), bytes), pitch, on_card(as_type(x, type), bytes),
                   step_x, to_beta, at, step_y),
              blas_success);
    const auto own_x = taken(x, of_x, step_x);
    const auto got = taken(read(at, y.size(), type), of_y, step_y);
    for (int i = 0; i < of_y; ++i) {
      double sum = 0;
      for (int j = 0; j < of_x; ++j) {
        const int place = operation == 0 ? j * pitch + i : i * pitch + j;
        sum += a[static_cast<std::size_t>(place)] * own_x[static_cast<std::size_t>(j)];
      }
      const auto index = static_cast<std::size_t>(i);
      ASSERT_EQ(got[index], 2 * sum + (beta == 0 ? 0 : beta * before[index]))
          << "element " << i << ", operation " << operation;
    }
  }
};

TEST_F(BlasVectors, with_a_matrix_are_right_at_all_steps_and_alignments) {
  for (const BlasType type : {type_f32, type_f64}) {
    for (const int operation : {0, 1, 2}) {
      expect_gemv(type, operation, 70, 41, 72, 1, 1, 0, 0);
      expect_gemv(type, operation, 41, 270, 43, -2, 3, 1, -1);
      expect_gemv(type, operation, 600, 5, 600, 1, -1, 0, 2);
      expect_gemv(type, operation, 1, 1, 1, 1, 1, 0, 0);
    }
  }
}

TEST_F(BlasVectors, are_added_scaled_and_copied) {
  for (const BlasType type : {type_f32, type_f64}) {
    const auto x = small_numbers(700, 1);
    const auto y = small_numbers(700, 2);
    auto at_x = on_card(as_type(x, type));
    auto at_y = on_card(as_type(y, type));
    ASSERT_EQ(call(name_of("axpy", type).c_str(), handle, 300, number(3, type), at_x, 2, at_y, -1),
              blas_success);
    auto got = read(at_y, 300, type);
    for (std::size_t i = 0; i < 300; ++i) ASSERT_EQ(got[299 - i], 3 * x[2 * i] + y[299 - i]);
    at_y = on_card(as_type(std::vector<double>(3, std::nan("")), type));
    ASSERT_EQ(call(name_of("axpy", type).c_str(), handle, 3, number(0, type), at_x, 1, at_y, 1),
              blas_success);
    ASSERT_TRUE(std::isnan(read(at_y, 1, type)[0]));
    ASSERT_EQ(call(name_of("scal", type).c_str(), handle, 300, number(-2, type), at_x, 2),
              blas_success);
    got = read(at_x, 700, type);
    for (std::size_t i = 0; i < 700; ++i)
      ASSERT_EQ(got[i], i % 2 == 0 && i < 600 ? -2 * x[i] : x[i]);
    ASSERT_EQ(call(name_of("scal", type).c_str(), handle, 300, number(-2, type), at_x, -1),
              blas_success);
    ASSERT_EQ(read(at_x, 1, type)[0], -2 * x[0]) << "BLAS scales nothing at a step below 1";
    const auto source = on_card(as_type(x, type));
    const auto target = on_card(as_type(y, type));
    ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 1), blas_success);
    ASSERT_EQ(call(name_of("copy", type).c_str(), handle, 100, source, 3, target, 2), blas_success);
    ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 0), blas_success);
    got = read(target, 200, type);
    for (std::size_t i = 0; i < 100; ++i) {
      ASSERT_EQ(got[2 * i], x[3 * i]);
      ASSERT_EQ(got[2 * i + 1], y[2 * i + 1]);
    }
    ASSERT_EQ(call(name_of("copy", type).c_str(), handle, 0, source, 1, target, 1), blas_success);
  }
}

TEST_F(BlasVectors, have_dot_products_and_norms_on_the_host_and_on_the_card) {
  for (const BlasType type : {type_f32, type_f64}) {
    for (const int count : {0, 1, 255, 20000}) {
      const auto x = small_numbers(40000, 1);
      const auto y = small_numbers(20000, 2);
      const auto at_x = on_card(as_type(x, type));
      const auto at_y = on_card(as_type(y, type));
      double dot = 0;
      double squares = 0;
      const auto step = [count](int i) { return static_cast<std::size_t>(count - 1 - i); };
      for (int i = 0; i < count; ++i) {
        const auto index = static_cast<std::size_t>(i);
        dot += x[2 * index] * y[step(i)];
        squares += x[2 * index] * x[2 * index];
      }
      std::vector<std::byte> result(8);
      ASSERT_EQ(call(name_of("dot", type).c_str(), handle, count, at_x, 2, at_y, -1, result.data()),
                blas_success);
      EXPECT_EQ(number_of(result.data(), type), dot);
      const auto on_the_card = on_card(as_type({7, 7}, type));
      ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 1), blas_success);
      ASSERT_EQ(call(name_of("nrm2", type).c_str(), handle, count, at_x, 2, on_the_card),
                blas_success);
      ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 0), blas_success);
      EXPECT_NEAR(read(on_the_card, 1, type)[0], std::sqrt(squares), 1e-6 * std::sqrt(squares));
      EXPECT_EQ(read(on_the_card, 2, type)[1], 7);
    }
  }
}

TEST_F(BlasVectors, keep_sums_of_streams_apart) {
  void* stream = nullptr;
  ASSERT_EQ(
      test::fake_symbol<int(void**, unsigned, int)>("cuStreamCreateWithPriority")(&stream, 1, 0),
      0);
  const auto x = on_card(as_type({1, 2, 3, 4}, type_f32));
  const auto first = on_card(std::vector<std::byte>(4));
  const auto second = on_card(std::vector<std::byte>(4));
  ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 1), blas_success);
  ASSERT_EQ(call("cublasSdot_v2", handle, 2, x, 1, x, 1, first), blas_success);
  ASSERT_EQ(call("cublasSetStream_v2", handle, stream), blas_success);
  ASSERT_EQ(call("cublasSdot_v2", handle, 4, x, 1, x, 1, second), blas_success);
  EXPECT_EQ(read(first, 1, type_f32)[0], 5);
  EXPECT_EQ(read(second, 1, type_f32)[0], 30);
  ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 0), blas_success);
  float sum = 0;
  ASSERT_EQ(call("cublasSdot_v2", handle, 4, x, 1, x, 1, &sum), blas_success);
  EXPECT_EQ(sum, 30);
  ASSERT_EQ(call("cublasSetStream_v2", handle, nullptr), blas_success);
  EXPECT_EQ(test::fake_symbol<int(void*)>("cuStreamDestroy_v2")(stream), 0);
}

// As in NVIDIA's library, which takes the context of CUDA's runtime.
TEST_F(BlasVectors, and_products_need_no_context_of_the_thread) {
  const auto x = on_card(as_type({1, 2, 3, 4}, type_f32));
  const auto out = on_card(as_type({0}, type_f32));
  float sum = 0;
  const float one = 1;
  const float zero = 0;
  std::thread([&] {
    EXPECT_EQ(call("cublasSgemm_v2", handle, 1, 0, 1, 1, 4, &one, x, 4, x, 4, &zero, out, 1),
              blas_success);
  }).join();
  EXPECT_EQ(read(out, 1, type_f32)[0], 30);
  std::thread([&] {
    EXPECT_EQ(call("cublasSdot_v2", handle, 4, x, 1, x, 1, &sum), blas_success);
  }).join();
  EXPECT_EQ(sum, 30);
}

TEST_F(BlasVectors, have_no_result_whose_elements_lie_at_one_address) {
  const auto at = on_card(as_type({1, 2, 3}, type_f32));
  const float one = 1;
  testing::internal::CaptureStderr();
  EXPECT_EQ(call("cublasSaxpy_v2", handle, 3, &one, at, 1, at, 0), blas_not_supported);
  EXPECT_EQ(call("cublasScopy_v2", handle, 3, at, 1, at, 0), blas_not_supported);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("all elements of its result have"));
  EXPECT_EQ(call("cublasScopy_v2", handle, 1, at, 1, at, 0), blas_success);
}

TEST_F(BlasVectors, have_norms_that_do_not_overflow) {
  double norm = 0;
  const auto ran = [&](const std::vector<double>& numbers) {
    EXPECT_EQ(call("cublasDnrm2_v2", handle, static_cast<int>(numbers.size()),
                   on_card(as_type(numbers, type_f64)), 1, &norm),
              blas_success);
    return norm;
  };
  EXPECT_DOUBLE_EQ(ran({3e200, -4e200}), 5e200);
  EXPECT_DOUBLE_EQ(ran({3e-200, 4e-200}), 5e-200);
  EXPECT_EQ(ran({-INFINITY, 1, INFINITY}), INFINITY);
  EXPECT_TRUE(std::isnan(ran({1, NAN, INFINITY})));
  EXPECT_EQ(call("cublasDnrm2_v2", handle, 2, on_card(as_type({1, 1}, type_f64)), 0, &norm),
            blas_success);
  EXPECT_EQ(norm, 0) << "BLAS takes nothing at a step below 1";
}

TEST_F(BlasVectors, with_wrong_sizes_are_refused) {
  const float one = 1;
  const auto at = on_card(as_type({1, 1, 1, 1}, type_f32));
  const auto gemv = [&](int operation, int m, int n, int pitch, int step_x, int step_y,
                        const float* alpha, const float* beta) {
    return call("cublasSgemv_v2", handle, operation, m, n, alpha, at, pitch, at, step_x, beta, at,
                step_y);
  };
  EXPECT_EQ(gemv(0, 1, 1, 1, 1, 1, &one, &one), blas_success);
  EXPECT_EQ(gemv(0, 0, 1, 1, 1, 1, &one, &one), blas_success);
  EXPECT_EQ(gemv(3, 1, 1, 1, 1, 1, &one, &one), blas_not_supported);
  EXPECT_EQ(gemv(0, -1, 1, 1, 1, 1, &one, &one), blas_invalid_value);
  EXPECT_EQ(gemv(0, 1, -1, 1, 1, 1, &one, &one), blas_invalid_value);
  EXPECT_EQ(gemv(0, 2, 1, 1, 1, 1, &one, &one), blas_invalid_value);
  EXPECT_EQ(gemv(0, 0, 1, 0, 1, 1, &one, &one), blas_invalid_value);
  EXPECT_EQ(gemv(0, 1, 1, 1, 0, 1, &one, &one), blas_invalid_value);
  EXPECT_EQ(gemv(0, 1, 1, 1, 1, 0, &one, &one), blas_invalid_value);
  EXPECT_EQ(gemv(0, 1, 1, 1, 1, 1, nullptr, &one), blas_invalid_value);
  EXPECT_EQ(gemv(0, 1, 1, 1, 1, 1, &one, nullptr), blas_invalid_value);
  EXPECT_EQ(gemv(0, 1, 0, 1, 1, 1, &one, &one), blas_success) << "nothing to do";
  EXPECT_EQ(call("cublasSaxpy_v2", handle, 1, nullptr, at, 1, at, 1), blas_invalid_value);
  EXPECT_EQ(call("cublasSdot_v2", handle, 1, at, 1, at, 1, nullptr), blas_invalid_value);
}

}  // namespace
}  // namespace demarc::cuda
