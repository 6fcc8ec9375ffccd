// cuBLAS's functions of products: gemm by type, GemmEx and their batches, each with its form of
// 64-bit sizes.
#include "handle.hpp"
#include "product.hpp"
#include "refusals.hpp"

namespace demarc::blas {
namespace {

// Functions of one type say by their names what they compute.
Code run_typed(const char* function, Handle* handle, DataType type, ComputeType compute,
               Product product) {
  if (known(handle) == nullptr) return not_initialized;
  product.function = function;
  if (!find_arithmetic(function, compute, type, type, type, handle->math, product.arithmetic,
                       product.scale)) {
    return not_supported;
  }
  for (Operand* operand : {&product.a, &product.b, &product.c, &product.d}) operand->type = type;
  product.scale_pointers = handle->pointers;
  return run(product, handle->stream);
}

// cublasGemmAlgo_t: which one is asked for changes nothing, but must be one.
bool is_algorithm(int algorithm) {
  constexpr int autotune = 999;  // CUBLAS_GEMM_AUTOTUNE
  return (algorithm >= -1 && algorithm <= 23) || (algorithm >= 99 && algorithm <= 115) ||
         algorithm == autotune;
}

Code run_mixed(const char* function, Handle* handle, ComputeType compute, int algorithm,
               Product product) {
  if (known(handle) == nullptr) return not_initialized;
  product.function = function;
  if (!is_algorithm(algorithm)) return refuse(function, "it knows no such algorithm");
  if (!find_arithmetic(function, compute, product.a.type, product.b.type, product.c.type,
                       handle->math, product.arithmetic, product.scale)) {
    return not_supported;
  }
  product.scale_pointers = handle->pointers;
  return run(product, handle->stream);
}

Product product_of(Operation a_operation, Operation b_operation, std::int64_t m, std::int64_t n,
                   std::int64_t k, const void* alpha, const Operand& a, const Operand& b,
                   const void* beta, const Operand& c) {
  Product product;
  product.a_operation = a_operation;
  product.b_operation = b_operation;
  product.m = m;
  product.n = n;
  product.k = k;
  product.alpha = alpha;
  product.beta = beta;
  product.a = a;
  product.b = b;
  product.c = c;
  product.d = c;
  return product;
}

Product batched(Product product, std::int64_t batches, bool arrays) {
  product.batches = batches;
  product.arrays = arrays;
  return product;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses): the names are NVIDIA's,
// and types of parameters are no expressions
// The functions of one type: `Int` is int, or std::int64_t in the form with _64.
#define DEMARC_BLAS_GEMM(name, batched_name, strided_name, Int, Number, type, compute)             \
  DEMARC_SHOWN Code name(Handle* handle, Operation ta, Operation tb, Int m, Int n, Int k,          \
                         const Number* alpha, const Number* a, Int lda, const Number* b, Int ldb,  \
                         const Number* beta, Number* c, Int ldc) {                                 \
    return run_typed(#name, handle, type, compute,                                                 \
                     product_of(ta, tb, m, n, k, alpha, {a, type, lda, 0}, {b, type, ldb, 0},      \
                                beta, {c, type, ldc, 0}));                                         \
  }                                                                                                \
  DEMARC_SHOWN Code batched_name(Handle* handle, Operation ta, Operation tb, Int m, Int n, Int k,  \
                                 const Number* alpha, const Number* const* a, Int lda,             \
                                 const Number* const* b, Int ldb, const Number* beta,              \
                                 Number* const* c, Int ldc, Int batches) {                         \
    return run_typed(#batched_name, handle, type, compute,                                         \
                     batched(product_of(ta, tb, m, n, k, alpha, {a, type, lda, 0},                 \
                                        {b, type, ldb, 0}, beta, {c, type, ldc, 0}),               \
                             batches, true));                                                      \
  }                                                                                                \
  DEMARC_SHOWN Code strided_name(                                                                  \
      Handle* handle, Operation ta, Operation tb, Int m, Int n, Int k, const Number* alpha,        \
      const Number* a, Int lda, long long stride_a, const Number* b, Int ldb, long long stride_b,  \
      const Number* beta, Number* c, Int ldc, long long stride_c, Int batches) {                   \
    return run_typed(#strided_name, handle, type, compute,                                         \
                     batched(product_of(ta, tb, m, n, k, alpha, {a, type, lda, stride_a},          \
                                        {b, type, ldb, stride_b}, beta, {c, type, ldc, stride_c}), \
                             batches, false));                                                     \
  }
DEMARC_BLAS_GEMM(cublasSgemm_v2, cublasSgemmBatched, cublasSgemmStridedBatched, int, float, f32,
                 compute_32f)
DEMARC_BLAS_GEMM(cublasSgemm_v2_64, cublasSgemmBatched_64, cublasSgemmStridedBatched_64,
                 std::int64_t, float, f32, compute_32f)
DEMARC_BLAS_GEMM(cublasDgemm_v2, cublasDgemmBatched, cublasDgemmStridedBatched, int, double, f64,
                 compute_64f)
DEMARC_BLAS_GEMM(cublasDgemm_v2_64, cublasDgemmBatched_64, cublasDgemmStridedBatched_64,
                 std::int64_t, double, f64, compute_64f)
DEMARC_BLAS_GEMM(cublasHgemm, cublasHgemmBatched, cublasHgemmStridedBatched, int, Half, f16,
                 compute_16f)
DEMARC_BLAS_GEMM(cublasHgemm_64, cublasHgemmBatched_64, cublasHgemmStridedBatched_64, std::int64_t,
                 Half, f16, compute_16f)

#define DEMARC_BLAS_GEMM_EX(name, batched_name, strided_name, sgemm_name, Int)                     \
  DEMARC_SHOWN Code name(Handle* handle, Operation ta, Operation tb, Int m, Int n, Int k,          \
                         const void* alpha, const void* a, DataType type_a, Int lda,               \
                         const void* b, DataType type_b, Int ldb, const void* beta, void* c,       \
                         DataType type_c, Int ldc, ComputeType compute, int algorithm) {           \
    return run_mixed(#name, handle, compute, algorithm,                                            \
                     product_of(ta, tb, m, n, k, alpha, {a, type_a, lda, 0}, {b, type_b, ldb, 0},  \
                                beta, {c, type_c, ldc, 0}));                                       \
  }                                                                                                \
  DEMARC_SHOWN Code batched_name(Handle* handle, Operation ta, Operation tb, Int m, Int n, Int k,  \
                                 const void* alpha, const void* const* a, DataType type_a,         \
                                 Int lda, const void* const* b, DataType type_b, Int ldb,          \
                                 const void* beta, void* const* c, DataType type_c, Int ldc,       \
                                 Int batches, ComputeType compute, int algorithm) {                \
    return run_mixed(#batched_name, handle, compute, algorithm,                                    \
                     batched(product_of(ta, tb, m, n, k, alpha, {a, type_a, lda, 0},               \
                                        {b, type_b, ldb, 0}, beta, {c, type_c, ldc, 0}),           \
                             batches, true));                                                      \
  }                                                                                                \
  DEMARC_SHOWN Code strided_name(                                                                  \
      Handle* handle, Operation ta, Operation tb, Int m, Int n, Int k, const void* alpha,          \
      const void* a, DataType type_a, Int lda, long long stride_a, const void* b, DataType type_b, \
      Int ldb, long long stride_b, const void* beta, void* c, DataType type_c, Int ldc,            \
      long long stride_c, Int batches, ComputeType compute, int algorithm) {                       \
    return run_mixed(                                                                              \
        #strided_name, handle, compute, algorithm,                                                 \
        batched(product_of(ta, tb, m, n, k, alpha, {a, type_a, lda, stride_a},                     \
                           {b, type_b, ldb, stride_b}, beta, {c, type_c, ldc, stride_c}),          \
                batches, false));                                                                  \
  }                                                                                                \
  DEMARC_SHOWN Code sgemm_name(Handle* handle, Operation ta, Operation tb, Int m, Int n, Int k,    \
                               const float* alpha, const void* a, DataType type_a, Int lda,        \
                               const void* b, DataType type_b, Int ldb, const float* beta,         \
                               void* c, DataType type_c, Int ldc) {                                \
    return run_mixed(#sgemm_name, handle, compute_32f, -1,                                         \
                     product_of(ta, tb, m, n, k, alpha, {a, type_a, lda, 0}, {b, type_b, ldb, 0},  \
                                beta, {c, type_c, ldc, 0}));                                       \
  }
DEMARC_BLAS_GEMM_EX(cublasGemmEx, cublasGemmBatchedEx, cublasGemmStridedBatchedEx, cublasSgemmEx,
                    int)
DEMARC_BLAS_GEMM_EX(cublasGemmEx_64, cublasGemmBatchedEx_64, cublasGemmStridedBatchedEx_64,
                    cublasSgemmEx_64, std::int64_t)
// NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses)

}  // namespace demarc::blas
