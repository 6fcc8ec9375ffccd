// A product as cuBLAS's functions ask for it, and the kernel that computes it.
#pragma once

#include "kernels/product_arguments.cuh"
#include "types.hpp"

namespace demarc::blas {

// A matrix as cuBLAS has it: by columns, or an array of such matrices.
struct Operand {
  const void* at = nullptr;  // or an array of addresses on the card, one per batch
  DataType type = f32;
  std::int64_t pitch = 0;   // leading dimension
  std::int64_t stride = 0;  // from one batch to the next, in elements
};

// How the sums of a product are computed.
enum class Arithmetic { f16, bf16, tf32, f32, f64 };

// D = activation(alpha op(A) op(B) + beta C + bias).
struct Product {
  const char* function = "";
  Arithmetic arithmetic = Arithmetic::f32;
  Operation a_operation = op_n, b_operation = op_n;
  std::int64_t m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* beta = nullptr;
  PointerMode scale_pointers = host_pointers;
  DataType scale = f32;  // type of alpha and beta
  Operand a, b, c, d;
  std::int64_t batches = 1;
  bool arrays = false;  // the operands are arrays of addresses
  const void* bias = nullptr;
  DataType bias_type = f32;
  int activation = no_activation;
};

// Refuses what is wrong with the sizes of a product.
[[nodiscard]] Code check(const Product& product);

// Launches a product that check() accepts.
[[nodiscard]] Code run(const Product& product, Stream stream);

// Which arithmetic a combination of types has; false: none, and `function` is refused by name.
[[nodiscard]] bool find_arithmetic(const char* function, ComputeType compute, DataType a,
                                   DataType b, DataType c, MathMode mode, Arithmetic& arithmetic,
                                   DataType& scale);

[[nodiscard]] std::uint32_t bytes_of_type(DataType type);

}  // namespace demarc::blas
