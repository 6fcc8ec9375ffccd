// The types and numbers of cuBLAS's headers that libdemarc_blas.so shares with programs. They are
// declared here, because Demarc is built where there is no CUDA toolkit.
#pragma once

#include <cstddef>
#include <cstdint>

#define DEMARC_SHOWN extern "C" __attribute__((visibility("default")))

namespace demarc::blas {

using Code = int;  // cublasStatus_t
enum Codes : Code {
  success = 0,
  not_initialized = 1,
  alloc_failed = 3,
  invalid_value = 7,
  arch_mismatch = 8,
  mapping_error = 11,
  execution_failed = 13,
  internal_error = 14,
  not_supported = 15,
  license_error = 16
};

using Operation = int;  // cublasOperation_t
enum Operations : Operation { op_n = 0, op_t = 1, op_c = 2 };

using DataType = int;     // cudaDataType_t; those of product_arguments.cuh, and
using ComputeType = int;  // cublasComputeType_t
enum ComputeTypes : ComputeType {
  compute_16f = 64,
  compute_16f_pedantic = 65,
  compute_32f = 68,
  compute_32f_pedantic = 69,
  compute_64f = 70,
  compute_64f_pedantic = 71,
  compute_32f_fast_tf32 = 77
};

using MathMode = int;  // cublasMath_t
enum MathModes : MathMode {
  default_math = 0,
  tensor_op_math = 1,
  pedantic_math = 2,
  tf32_math = 3,
  disallow_reduced_precision = 16  // a flag
};

using PointerMode = int;  // cublasPointerMode_t
enum PointerModes : PointerMode { host_pointers = 0, device_pointers = 1 };

using Stream = struct CuStreamOfTheDriver*;
using Context = void*;       // CUcontext
using Half = std::uint16_t;  // __half, __nv_bfloat16

}  // namespace demarc::blas
