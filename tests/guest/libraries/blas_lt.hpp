// cuBLASLt in libdemarc_blas.so, with descriptions of a small product.
#pragma once

#include "blas.hpp"

namespace demarc::cuda {

// As cublasLtMatmulHeuristicResult_t.
struct LtAnswer {
  std::uint64_t algorithm[8] = {};
  std::size_t workspace_bytes = 7;
  int state = 7;
  float waves = 0;
  int reserved[4] = {};
};

inline constexpr int epilogue_attribute = 7;
inline constexpr int bias_attribute = 8;
inline constexpr int bias_type_attribute = 26;

class BlasLt : public Blas {
 protected:
  void SetUp() override {
    Blas::SetUp();
    ASSERT_EQ(call("cublasLtCreate", &lt), blas_success);
    ASSERT_EQ(call("cublasLtMatmulDescCreate", &product, 68, int{type_f32}), blas_success);
    ASSERT_EQ(call("cublasLtMatmulPreferenceCreate", &preference), blas_success);
    describe(type_f16, type_f16, 2, 3, 4);
  }
  void TearDown() override {
    for (void* layout : {a, b, c, d}) {
      EXPECT_EQ(call("cublasLtMatrixLayoutDestroy", layout), blas_success);
    }
    EXPECT_EQ(call("cublasLtMatmulPreferenceDestroy", preference), blas_success);
    EXPECT_EQ(call("cublasLtMatmulDescDestroy", product), blas_success);
    EXPECT_EQ(call("cublasLtDestroy", lt), blas_success);
    Blas::TearDown();
  }
  void describe(int inputs, int out, std::uint64_t m, std::uint64_t n, std::uint64_t k) {
    const auto layout = [&](void** made, int type, std::uint64_t rows, std::uint64_t columns) {
      if (*made != nullptr) {
        EXPECT_EQ(call("cublasLtMatrixLayoutDestroy", *made), blas_success);
      }
      EXPECT_EQ(call("cublasLtMatrixLayoutCreate", made, type, rows, columns,
                     static_cast<std::int64_t>(rows)),
                blas_success);
    };
    layout(&a, inputs, m, k);
    layout(&b, inputs, k, n);
    layout(&c, out, m, n);
    layout(&d, out, m, n);
  }
  template <class Value>
  BlasCode set(int attribute, Value value) {
    return call("cublasLtMatmulDescSetAttribute", product, attribute, &value, sizeof value);
  }
  template <class Value>
  BlasCode set_layout(void* layout, int attribute, Value value) {
    return call("cublasLtMatrixLayoutSetAttribute", layout, attribute, &value, sizeof value);
  }
  BlasCode heuristic(LtAnswer& answer) {
    int returned = -1;
    const BlasCode code = call("cublasLtMatmulAlgoGetHeuristic", lt, product, a, b, c, d,
                               preference, 1, &answer, &returned);
    EXPECT_EQ(returned, code == blas_success ? 1 : 0);
    return code;
  }
  BlasCode matmul(unsigned long long of_a, unsigned long long of_b, unsigned long long of_c,
                  unsigned long long of_d, const void* algorithm = nullptr, float beta = 0) {
    const float one = 1;
    return call("cublasLtMatmul", lt, product, &one, of_a, a, of_b, b, &beta, of_c, c, of_d, d,
                algorithm, nullptr, std::size_t{0}, nullptr);
  }
  // A row of one number with a column of one number, `sum` in all, and what becomes of it.
  double after_epilogue(std::uint32_t epilogue, double sum, double bias) {
    describe(type_f16, type_f16, 1, 1, 1);
    EXPECT_EQ(set(epilogue_attribute, epilogue), blas_success);
    EXPECT_EQ(set(bias_attribute, on_card(as_type({bias}, type_f16))), blas_success);
    const auto out = on_card(as_type({std::nan("")}, type_f16));
    EXPECT_EQ(matmul(on_card(as_type({sum}, type_f16)), on_card(as_type({1}, type_f16)), out, out),
              blas_success);
    return number_of(from_card(out, 2).data(), type_f16);
  }

  void *lt = nullptr, *product = nullptr, *preference = nullptr;
  void *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
};

}  // namespace demarc::cuda
