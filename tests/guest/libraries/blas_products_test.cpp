// Products of libdemarc_blas.so next to sums in double precision.
#include "blas.hpp"

namespace demarc::cuda {
namespace {

struct Shape {
  int m = 0, n = 0, k = 0;
  BlasType inputs = type_f16, out = type_f16;
  int compute = 68;  // CUBLAS_COMPUTE_32F
  int ahead = 0;     // elements behind an aligned address
  int more = 0;      // of each leading dimension
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
    const Side a = side(ta == 0 ? s.m : s.k, ta == 0 ? s.k : s.m, s.inputs, s, 1);
    const Side b = side(tb == 0 ? s.k : s.n, tb == 0 ? s.n : s.k, s.inputs, s, 2);
    Side c = side(s.m, s.n, s.out, s, 3);
    if (s.beta == 0) {
      const std::vector<double> nan(c.numbers.size(), std::nan(""));
      c.at = on_card(as_type(nan, s.out), static_cast<std::size_t>(s.ahead) * type_bytes(s.out));
    }
    const bool half = s.compute == 64;
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
  expect_right({.m = 40, .n = 24, .k = 72, .compute = 64, .alpha = 0.5, .beta = 2});
}

}  // namespace
}  // namespace demarc::cuda
