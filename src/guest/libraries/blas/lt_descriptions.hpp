// cuBLASLt's descriptions of a product, of a matrix and of a preference, and their attributes.
#pragma once

#include <span>

#include "kernels/product_arguments.cuh"
#include "types.hpp"

namespace demarc::blas {

// Programs may give the place of one (cublasLtMatmulDescInit()): 184 bytes in CUDA 12.
struct LtProduct {
  std::int32_t compute = compute_32f;
  std::int32_t scale = f32;
  std::int32_t pointers = host_pointers;
  std::int32_t a_operation = op_n;
  std::int32_t b_operation = op_n;
  std::uint32_t epilogue = 1;  // CUBLASLT_EPILOGUE_DEFAULT
  std::uint64_t bias = 0;
  std::int32_t bias_type = -1;  // that of D
  std::int32_t sm_count_target = 0;
  std::int8_t fast_sums = 0;
};
static_assert(sizeof(LtProduct) <= 184);

// 64 bytes.
struct LtMatrix {
  std::uint32_t type = f32;
  std::int32_t order = 0;  // by columns
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t pitch = 0;
  std::int32_t batches = 1;
  std::uint32_t batch_mode = 0;  // 0: at a stride, 1: an array of addresses
  std::int64_t stride = 0;
};
static_assert(sizeof(LtMatrix) <= 64);

// Hints, which the only algorithm here does not need.
struct LtPreference {
  std::uint32_t search = 0;
  std::uint32_t reductions = 7;
  std::uint64_t workspace_bytes = 0;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
  float waves = 0;
  std::uint64_t implementations = ~std::uint64_t{0};
};
static_assert(sizeof(LtPreference) <= 64);

struct LtAttribute {
  int number;  // in its enumeration
  const char* name;
  std::size_t bytes;
  std::size_t offset;     // in the description; no_place: it is not kept
  std::int64_t only = 0;  // without a place: the one value that it may have
};
inline constexpr std::size_t no_place = ~std::size_t{0};

std::span<const LtAttribute> product_attributes();
std::span<const LtAttribute> matrix_attributes();
std::span<const LtAttribute> preference_attributes();

// cublasLt…SetAttribute() and …GetAttribute(). What is not known, and a value that the library does
// not compute with, is refused by name.
Code set_attribute(const char* function, std::span<const LtAttribute> attributes, void* description,
                   int number, const void* value, std::size_t bytes);
Code get_attribute(const char* function, std::span<const LtAttribute> attributes,
                   const void* description, int number, void* value, std::size_t bytes,
                   std::size_t* written);

}  // namespace demarc::blas
