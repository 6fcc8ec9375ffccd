// The tables of cuBLASLt's attributes, and what sets and reads them.
#include "lt_descriptions.hpp"

#include <cstring>
#include <string>

#include "refusals.hpp"

namespace demarc::blas {
namespace {

#define DEMARC_BLAS_AT(type, member) sizeof(type::member), offsetof(type, member)
// clang-format off
constexpr LtAttribute of_product[] = {
    {0, "CUBLASLT_MATMUL_DESC_COMPUTE_TYPE", DEMARC_BLAS_AT(LtProduct, compute)},
    {1, "CUBLASLT_MATMUL_DESC_SCALE_TYPE", DEMARC_BLAS_AT(LtProduct, scale)},
    {2, "CUBLASLT_MATMUL_DESC_POINTER_MODE", DEMARC_BLAS_AT(LtProduct, pointers)},
    {3, "CUBLASLT_MATMUL_DESC_TRANSA", DEMARC_BLAS_AT(LtProduct, a_operation)},
    {4, "CUBLASLT_MATMUL_DESC_TRANSB", DEMARC_BLAS_AT(LtProduct, b_operation)},
    {5, "CUBLASLT_MATMUL_DESC_TRANSC", 4, no_place, op_n},
    {6, "CUBLASLT_MATMUL_DESC_FILL_MODE", 4, no_place, 2},
    {7, "CUBLASLT_MATMUL_DESC_EPILOGUE", DEMARC_BLAS_AT(LtProduct, epilogue)},
    {8, "CUBLASLT_MATMUL_DESC_BIAS_POINTER", DEMARC_BLAS_AT(LtProduct, bias)},
    {10, "CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE", 8, no_place},
    {11, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER", 8, no_place},
    {12, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD", 8, no_place},
    {13, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE", 8, no_place},
    {14, "CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE", 8, no_place},
    {15, "CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET", DEMARC_BLAS_AT(LtProduct, sm_count_target)},
    {17, "CUBLASLT_MATMUL_DESC_A_SCALE_POINTER", 8, no_place},
    {18, "CUBLASLT_MATMUL_DESC_B_SCALE_POINTER", 8, no_place},
    {19, "CUBLASLT_MATMUL_DESC_C_SCALE_POINTER", 8, no_place},
    {20, "CUBLASLT_MATMUL_DESC_D_SCALE_POINTER", 8, no_place},
    {21, "CUBLASLT_MATMUL_DESC_AMAX_D_POINTER", 8, no_place},
    {25, "CUBLASLT_MATMUL_DESC_FAST_ACCUM", DEMARC_BLAS_AT(LtProduct, fast_sums)},
    {26, "CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE", DEMARC_BLAS_AT(LtProduct, bias_type)},
};
constexpr LtAttribute of_matrix[] = {
    {0, "CUBLASLT_MATRIX_LAYOUT_TYPE", DEMARC_BLAS_AT(LtMatrix, type)},
    {1, "CUBLASLT_MATRIX_LAYOUT_ORDER", DEMARC_BLAS_AT(LtMatrix, order)},
    {2, "CUBLASLT_MATRIX_LAYOUT_ROWS", DEMARC_BLAS_AT(LtMatrix, rows)},
    {3, "CUBLASLT_MATRIX_LAYOUT_COLS", DEMARC_BLAS_AT(LtMatrix, columns)},
    {4, "CUBLASLT_MATRIX_LAYOUT_LD", DEMARC_BLAS_AT(LtMatrix, pitch)},
    {5, "CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT", DEMARC_BLAS_AT(LtMatrix, batches)},
    {6, "CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET", DEMARC_BLAS_AT(LtMatrix, stride)},
    {7, "CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET", 8, no_place},
    {8, "CUBLASLT_MATRIX_LAYOUT_BATCH_MODE", DEMARC_BLAS_AT(LtMatrix, batch_mode)},
};
constexpr LtAttribute of_preference[] = {
    {0, "CUBLASLT_MATMUL_PREF_SEARCH_MODE", DEMARC_BLAS_AT(LtPreference, search)},
    {1, "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES", DEMARC_BLAS_AT(LtPreference, workspace_bytes)},
    {3, "CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK", DEMARC_BLAS_AT(LtPreference, reductions)},
    {5, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES", DEMARC_BLAS_AT(LtPreference, alignments[0])},
    {6, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES", DEMARC_BLAS_AT(LtPreference, alignments[1])},
    {7, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES", DEMARC_BLAS_AT(LtPreference, alignments[2])},
    {8, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES", DEMARC_BLAS_AT(LtPreference, alignments[3])},
    {9, "CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT", DEMARC_BLAS_AT(LtPreference, waves)},
    {12, "CUBLASLT_MATMUL_PREF_IMPL_MASK", DEMARC_BLAS_AT(LtPreference, implementations)},
};
// clang-format on
#undef DEMARC_BLAS_AT

const LtAttribute* find(std::span<const LtAttribute> attributes, int number) {
  for (const LtAttribute& attribute : attributes) {
    if (attribute.number == number) return &attribute;
  }
  return nullptr;
}

}  // namespace

std::span<const LtAttribute> product_attributes() {
  return of_product;
}
std::span<const LtAttribute> matrix_attributes() {
  return of_matrix;
}
std::span<const LtAttribute> preference_attributes() {
  return of_preference;
}

Code set_attribute(const char* function, std::span<const LtAttribute> attributes, void* description,
                   int number, const void* value, std::size_t bytes) {
  if (description == nullptr || value == nullptr) return invalid_value;
  const LtAttribute* const attribute = find(attributes, number);
  if (attribute == nullptr) {
    return refuse(function, "it knows no attribute " + std::to_string(number));
  }
  if (bytes != attribute->bytes) return invalid_value;
  if (attribute->offset != no_place) {
    std::memcpy(static_cast<std::byte*>(description) + attribute->offset, value, bytes);
    return success;
  }
  std::int64_t asked = 0;
  std::memcpy(&asked, value, bytes);
  if (asked == attribute->only) return success;
  return refuse(function,
                std::string(attribute->name) + " may only be " + std::to_string(attribute->only));
}

Code get_attribute(const char* function, std::span<const LtAttribute> attributes,
                   const void* description, int number, void* value, std::size_t bytes,
                   std::size_t* written) {
  if (description == nullptr) return invalid_value;
  const LtAttribute* const attribute = find(attributes, number);
  if (attribute == nullptr) {
    return refuse(function, "it knows no attribute " + std::to_string(number));
  }
  if (bytes == 0 && written != nullptr) {
    *written = attribute->bytes;
    return success;
  }
  if (value == nullptr || bytes != attribute->bytes) return invalid_value;
  if (attribute->offset != no_place) {
    std::memcpy(value, static_cast<const std::byte*>(description) + attribute->offset, bytes);
  } else {
    std::memcpy(value, &attribute->only, bytes);
  }
  if (written != nullptr) *written = bytes;
  return success;
}

}  // namespace demarc::blas
