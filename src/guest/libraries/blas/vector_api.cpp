// cuBLAS's functions of vectors, and of a matrix and a vector, for f32 and f64. Each has a form
// with 64-bit sizes, too.
#include <algorithm>
#include <string>

#include "handle.hpp"
#include "kernels.hpp"
#include "kernels/product_arguments.cuh"
#include "kernels/vector_arguments.cuh"
#include "refusals.hpp"

namespace demarc::blas {
namespace {

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t max_blocks = 1024;
constexpr std::uint64_t max_blocks_of_grid = 0x7fffffff;

std::uint64_t address_of(const void* at) {
  return reinterpret_cast<std::uint64_t>(at);
}

// A vector of negative step begins at its last element.
template <class Number>
std::uint64_t first_of(const Number* at, std::int64_t count, std::int64_t step) {
  const std::uint64_t before = std::uint64_t{1} - static_cast<std::uint64_t>(count);
  return address_of(at) +
         (step < 0 ? before * static_cast<std::uint64_t>(step) : 0) * sizeof(Number);
}

template <class Number>
void set_scales(VectorArguments& p, PointerMode mode, const Number* alpha, const Number* beta) {
  if (mode == device_pointers) {
    p.alpha_at = address_of(alpha);
    p.beta_at = address_of(beta);
    return;
  }
  p.alpha = static_cast<double>(*alpha);
  if (beta != nullptr) p.beta = static_cast<double>(*beta);
}

template <class Number>
std::string kernel_of(const char* name) {
  return std::string("demarc_") + name + (sizeof(Number) == 4 ? "_s" : "_d");
}

Code launch_vector(const std::string& kernel, std::uint64_t blocks, const Handle& handle,
                   const VectorArguments& p) {
  return launch("blas_vectors", kernel.c_str(),
                {{static_cast<std::uint32_t>(blocks), 1, 1}, threads, 0}, handle.stream, &p);
}

std::uint64_t blocks_for(std::uint64_t count, std::uint64_t of_one) {
  return (count + of_one - 1) / of_one;
}

template <class Number>
Code run_gemv(const char* function, Handle* handle, Operation operation, std::int64_t m,
              std::int64_t n, const Number* alpha, const Number* a, std::int64_t lda,
              const Number* x, std::int64_t step_x, const Number* beta, Number* y,
              std::int64_t step_y) {
  if (known(handle) == nullptr) return not_initialized;
  if (operation != op_n && operation != op_t && operation != op_c) {
    return refuse(function, "the operation is neither N nor T nor C");
  }
  if (m < 0 || n < 0 || lda < std::max<std::int64_t>(1, m) || step_x == 0 || step_y == 0 ||
      alpha == nullptr || beta == nullptr) {
    return invalid_value;
  }
  if (m == 0 || n == 0) return success;
  const std::int64_t of_x = operation == op_n ? n : m;
  const std::int64_t of_y = operation == op_n ? m : n;
  const std::uint64_t of_block = operation == op_n ? 128 / sizeof(Number) : threads / 32;
  const std::uint64_t blocks = blocks_for(static_cast<std::uint64_t>(of_y), of_block);
  if (blocks > max_blocks_of_grid) {
    return refuse(function, "its result has more than " +
                                std::to_string(max_blocks_of_grid * of_block) + " elements");
  }
  VectorArguments p = {};
  p.a = address_of(a);
  p.x = first_of(x, of_x, step_x);
  p.y = first_of(y, of_y, step_y);
  p.pitch = static_cast<std::uint64_t>(lda);
  p.step_x = step_x;
  p.step_y = step_y;
  p.rows = static_cast<std::uint64_t>(m);
  p.columns = static_cast<std::uint64_t>(n);
  set_scales(p, handle->pointers, alpha, beta);
  return launch_vector(kernel_of<Number>(operation == op_n ? "gemv_n" : "gemv_t"), blocks, *handle,
                       p);
}

template <class Number>
Code launch_change(const char* name, const Handle& handle, VectorArguments p, std::int64_t n,
                   const Number* x, std::int64_t step_x, const Number* y, std::int64_t step_y) {
  if (n <= 0) return success;
  if (step_y == 0 && n > 1) return refuse(name, "all elements of its result have one address");
  p.x = first_of(x, n, step_x);
  p.y = first_of(y, n, step_y);
  p.step_x = step_x;
  p.step_y = step_y;
  p.rows = static_cast<std::uint64_t>(n);
  return launch_vector(kernel_of<Number>(name),
                       std::min<std::uint64_t>(blocks_for(p.rows, threads), max_blocks), handle, p);
}

template <class Number>
Code run_change(const char* name, Handle* handle, std::int64_t n, const Number* alpha,
                const Number* x, std::int64_t step_x, const Number* y, std::int64_t step_y) {
  if (known(handle) == nullptr) return not_initialized;
  if (alpha == nullptr) return invalid_value;
  VectorArguments p = {};
  set_scales<Number>(p, handle->pointers, alpha, nullptr);
  return launch_change(name, *handle, p, n, x, step_x, y, step_y);
}

// `result` is on the card or on the host, as the handle's pointers are.
template <class Number>
Code run_sum(const char* name, Handle* handle, std::int64_t n, const Number* x, std::int64_t step_x,
             const Number* y, std::int64_t step_y, Number* result) {
  if (known(handle) == nullptr) return not_initialized;
  if (result == nullptr) return invalid_value;
  VectorArguments p = {};
  p.rows = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
  p.x = first_of(x, n, step_x);
  p.y = first_of(y, n, step_y);
  p.step_x = step_x;
  p.step_y = step_y;
  Context const context = current_context();
  if (context == nullptr) return not_initialized;
  const std::lock_guard lock(handle->mutex);
  std::uint64_t& sum = handle->sums[{context, handle->stream}];
  if (sum == 0 && (sum = allocate(Handle::result_bytes)) == 0) return alloc_failed;
  p.parts = sum + 16;
  const bool on_host = handle->pointers == host_pointers;
  p.result = on_host ? sum : address_of(result);
  p.count = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(blocks_for(p.rows, threads), 1, Handle::max_parts));
  if (const Code code = launch_vector(kernel_of<Number>(name), p.count, *handle, p);
      code != success) {
    return code;
  }
  // The end of a sum is the work of one thread.
  KernelShape one;
  const std::string end = kernel_of<Number>((std::string(name) + "_end").c_str());
  if (const Code code = launch("blas_vectors", end.c_str(), one, handle->stream, &p);
      code != success) {
    return code;
  }
  return on_host ? copy_to_host(result, sum, sizeof(Number), handle->stream) : success;
}

// The step of one that has none gives no elements, as in BLAS.
template <class Number>
Code run_norm(Handle* handle, std::int64_t n, const Number* x, std::int64_t step, Number* result) {
  return run_sum<Number>("nrm2", handle, step > 0 ? n : 0, x, step, x, step, result);
}

template <class Number>
Code run_scale(Handle* handle, std::int64_t n, const Number* alpha, Number* x, std::int64_t step) {
  return run_change<Number>("scal", handle, step > 0 ? n : 0, alpha, x, step, x, step);
}

template <class Number>
Code run_copy(Handle* handle, std::int64_t n, const Number* x, std::int64_t step_x, Number* y,
              std::int64_t step_y) {
  if (known(handle) == nullptr) return not_initialized;
  return launch_change<Number>("copy", *handle, {}, n, x, step_x, y, step_y);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses): the names are NVIDIA's,
// and types of parameters are no expressions
#define DEMARC_BLAS_VECTORS(letter, Number, suffix, Int)                                        \
  DEMARC_SHOWN Code cublas##letter##gemv##suffix(                                               \
      Handle* handle, Operation operation, Int m, Int n, const Number* alpha, const Number* a,  \
      Int lda, const Number* x, Int step_x, const Number* beta, Number* y, Int step_y) {        \
    return run_gemv<Number>("cublas" #letter "gemv" #suffix, handle, operation, m, n, alpha, a, \
                            lda, x, step_x, beta, y, step_y);                                   \
  }                                                                                             \
  DEMARC_SHOWN Code cublas##letter##axpy##suffix(Handle* handle, Int n, const Number* alpha,    \
                                                 const Number* x, Int step_x, Number* y,        \
                                                 Int step_y) {                                  \
    return run_change<Number>("axpy", handle, n, alpha, x, step_x, y, step_y);                  \
  }                                                                                             \
  DEMARC_SHOWN Code cublas##letter##scal##suffix(Handle* handle, Int n, const Number* alpha,    \
                                                 Number* x, Int step_x) {                       \
    return run_scale<Number>(handle, n, alpha, x, step_x);                                      \
  }                                                                                             \
  DEMARC_SHOWN Code cublas##letter##copy##suffix(Handle* handle, Int n, const Number* x,        \
                                                 Int step_x, Number* y, Int step_y) {           \
    return run_copy<Number>(handle, n, x, step_x, y, step_y);                                   \
  }                                                                                             \
  DEMARC_SHOWN Code cublas##letter##dot##suffix(Handle* handle, Int n, const Number* x,         \
                                                Int step_x, const Number* y, Int step_y,        \
                                                Number* result) {                               \
    return run_sum<Number>("dot", handle, n, x, step_x, y, step_y, result);                     \
  }                                                                                             \
  DEMARC_SHOWN Code cublas##letter##nrm2##suffix(Handle* handle, Int n, const Number* x,        \
                                                 Int step_x, Number* result) {                  \
    return run_norm<Number>(handle, n, x, step_x, result);                                      \
  }
DEMARC_BLAS_VECTORS(S, float, _v2, int)
DEMARC_BLAS_VECTORS(S, float, _v2_64, std::int64_t)
DEMARC_BLAS_VECTORS(D, double, _v2, int)
DEMARC_BLAS_VECTORS(D, double, _v2_64, std::int64_t)
// NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses)

}  // namespace demarc::blas
