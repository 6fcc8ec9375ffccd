// cuBLASLt: descriptions, the one algorithm, and cublasLtMatmul().
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "handle.hpp"
#include "kernels.hpp"
#include "lt_descriptions.hpp"
#include "product.hpp"
#include "refusals.hpp"

namespace demarc::blas {
namespace {

struct LtHandle {
  static constexpr std::uint64_t right_mark = 0x44454d424c415332;  // "DEMBLAS2"
  std::uint64_t mark = right_mark;
};
// A program may give one of cuBLAS's to cuBLASLt.
bool is_known(const void* handle) {
  if (handle == nullptr) return false;
  std::uint64_t mark = 0;
  std::memcpy(&mark, handle, sizeof mark);
  return mark == LtHandle::right_mark || mark == Handle::right_mark;
}

// As cublasLtMatmulHeuristicResult_t has it.
struct LtAlgorithm {
  std::uint64_t data[8];
};
struct LtResult {
  LtAlgorithm algorithm;
  std::size_t workspace_bytes;
  Code state;
  float waves;
  int reserved[4];
};
constexpr std::uint64_t algorithm_mark = 0x44454d424c415333;  // "DEMBLAS3"

constexpr std::uint32_t epilogue_with_bias = 4;
struct EpilogueRow {
  std::uint32_t epilogue;  // cublasLtEpilogue_t
  bool has_bias;
  int activation;
};
constexpr EpilogueRow epilogues[] = {{1, false, no_activation}, {4, true, no_activation},
                                     {2, false, relu},          {6, true, relu},
                                     {32, false, gelu},         {36, true, gelu}};

template <class Description, class... Values>
Code make(Description** made, Values... values) {
  if (made == nullptr) return invalid_value;
  *made = new Description{values...};
  return success;
}

template <class Description>
Code end(Description* description) {
  if (description == nullptr) return invalid_value;
  delete description;
  return success;
}

// In memory of the program's.
template <class Description>
Code begin_at(void* place, std::size_t bytes, const Description& description) {
  if (place == nullptr || bytes < sizeof(Description)) return invalid_value;
  new (place) Description(description);
  return success;
}

LtProduct product_with(ComputeType compute, DataType scale) {
  LtProduct product;
  product.compute = compute;
  product.scale = scale;
  return product;
}

LtMatrix matrix_with(DataType type, std::uint64_t rows, std::uint64_t columns, std::int64_t pitch) {
  LtMatrix matrix;
  matrix.type = static_cast<std::uint32_t>(type);
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.pitch = pitch;
  return matrix;
}

Operand operand_of(const LtMatrix& matrix, const void* at) {
  return {at, static_cast<DataType>(matrix.type), matrix.pitch, matrix.stride};
}

bool has_size(const LtMatrix& matrix, Operation operation, std::int64_t rows,
              std::int64_t columns) {
  if (operation != op_n) std::swap(rows, columns);
  return matrix.rows == static_cast<std::uint64_t>(rows) &&
         matrix.columns == static_cast<std::uint64_t>(columns);
}

Code find_epilogue(const char* function, const LtProduct& of, DataType out, Product& product) {
  for (const EpilogueRow& row : epilogues) {
    if (row.epilogue != of.epilogue) continue;
    product.activation = row.activation;
    if (row.has_bias) {
      product.bias_type = of.bias_type == -1 ? out : of.bias_type;
      product.bias = reinterpret_cast<const void*>(of.bias);  // NOLINT: as programs give it
      if (product.bias_type != f32 && product.bias_type != f16 && product.bias_type != bf16) {
        return refuse(function, "a bias has another type than f32, f16 and bf16");
      }
    }
    if (product.arithmetic == Arithmetic::f32 && row.has_bias && product.bias_type != f32) {
      return refuse(function, "a product of f32 has a bias of another type");
    }
    if (product.arithmetic == Arithmetic::f64 && of.epilogue != 1) {
      return refuse(function, "products of f64 have no epilogue");
    }
    return success;
  }
  return refuse(function, "it has no epilogue " + std::to_string(of.epilogue) +
                              " (CUBLASLT_EPILOGUE_DEFAULT, BIAS, RELU, RELU_BIAS, GELU and "
                              "GELU_BIAS are there)");
}

struct LtMatrices {
  const LtMatrix *a, *b, *c, *d;
};

// What a call asks for, without its addresses.
Code find_product(const char* function, const LtProduct* of, const LtMatrices& matrices,
                  Product& product) {
  const auto& [a, b, c, d] = matrices;
  if (of == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr) {
    return invalid_value;
  }
  product.function = function;
  if (of->pointers != host_pointers && of->pointers != device_pointers) {
    return refuse(function, "alpha and beta may only be one number each");
  }
  for (const LtMatrix* matrix : {a, b, c, d}) {
    if (matrix->order != 0) {
      return refuse(function, "a matrix has another order than CUBLASLT_ORDER_COL");
    }
    if (matrix->batch_mode > 1) return refuse(function, "a matrix has an unknown batch mode");
    if (matrix->batch_mode != d->batch_mode) {
      return refuse(function, "the matrices have different batch modes");
    }
    if (matrix->batches != d->batches) return invalid_value;
  }
  if (c->type != d->type) return refuse(function, "C and D have different types");
  product.m = static_cast<std::int64_t>(d->rows);
  product.n = static_cast<std::int64_t>(d->columns);
  product.a_operation = of->a_operation;
  product.b_operation = of->b_operation;
  product.k = static_cast<std::int64_t>(of->a_operation == op_n ? a->columns : a->rows);
  if (!has_size(*a, of->a_operation, product.m, product.k) ||
      !has_size(*b, of->b_operation, product.k, product.n) ||
      !has_size(*c, op_n, product.m, product.n)) {
    return invalid_value;
  }
  product.a = operand_of(*a, nullptr);
  product.b = operand_of(*b, nullptr);
  product.c = operand_of(*c, nullptr);
  product.d = operand_of(*d, nullptr);
  product.batches = d->batches;
  product.arrays = d->batch_mode == 1;
  product.scale_pointers = of->pointers;
  if (!find_arithmetic(function, of->compute, product.a.type, product.b.type, product.d.type,
                       default_math, product.arithmetic, product.scale)) {
    return not_supported;
  }
  if (product.scale != of->scale) {
    return refuse(function, "alpha and beta have another type than the compute type needs");
  }
  if (const Code code = find_epilogue(function, *of, product.d.type, product); code != success) {
    return code;
  }
  return check(product);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are NVIDIA's
DEMARC_SHOWN Code cublasLtCreate(LtHandle** handle) {
  if (handle == nullptr) return invalid_value;
  *handle = nullptr;
  if (const Code code = find_context(); code != success) return code;
  return make(handle);
}

DEMARC_SHOWN Code cublasLtDestroy(LtHandle* handle) {
  if (handle == nullptr || handle->mark != LtHandle::right_mark) return not_initialized;
  handle->mark = 0;
  return end(handle);
}

DEMARC_SHOWN Code cublasLtMatmulDescCreate(LtProduct** made, ComputeType compute, DataType scale) {
  return make(made, product_with(compute, scale));
}
DEMARC_SHOWN Code cublasLtMatmulDescInit_internal(void* place, std::size_t bytes,
                                                  ComputeType compute, DataType scale) {
  return begin_at(place, bytes, product_with(compute, scale));
}
DEMARC_SHOWN Code cublasLtMatmulDescDestroy(LtProduct* product) {
  return end(product);
}
DEMARC_SHOWN Code cublasLtMatmulDescSetAttribute(LtProduct* product, int number, const void* value,
                                                 std::size_t bytes) {
  return set_attribute("cublasLtMatmulDescSetAttribute", product_attributes(), product, number,
                       value, bytes);
}
DEMARC_SHOWN Code cublasLtMatmulDescGetAttribute(LtProduct* product, int number, void* value,
                                                 std::size_t bytes, std::size_t* written) {
  return get_attribute("cublasLtMatmulDescGetAttribute", product_attributes(), product, number,
                       value, bytes, written);
}

DEMARC_SHOWN Code cublasLtMatrixLayoutCreate(LtMatrix** made, DataType type, std::uint64_t rows,
                                             std::uint64_t columns, std::int64_t pitch) {
  return make(made, matrix_with(type, rows, columns, pitch));
}
DEMARC_SHOWN Code cublasLtMatrixLayoutInit_internal(void* place, std::size_t bytes, DataType type,
                                                    std::uint64_t rows, std::uint64_t columns,
                                                    std::int64_t pitch) {
  return begin_at(place, bytes, matrix_with(type, rows, columns, pitch));
}
DEMARC_SHOWN Code cublasLtMatrixLayoutDestroy(LtMatrix* matrix) {
  return end(matrix);
}
DEMARC_SHOWN Code cublasLtMatrixLayoutSetAttribute(LtMatrix* matrix, int number, const void* value,
                                                   std::size_t bytes) {
  return set_attribute("cublasLtMatrixLayoutSetAttribute", matrix_attributes(), matrix, number,
                       value, bytes);
}
DEMARC_SHOWN Code cublasLtMatrixLayoutGetAttribute(LtMatrix* matrix, int number, void* value,
                                                   std::size_t bytes, std::size_t* written) {
  return get_attribute("cublasLtMatrixLayoutGetAttribute", matrix_attributes(), matrix, number,
                       value, bytes, written);
}

DEMARC_SHOWN Code cublasLtMatmulPreferenceCreate(LtPreference** made) {
  return make(made);
}
DEMARC_SHOWN Code cublasLtMatmulPreferenceInit_internal(void* place, std::size_t bytes) {
  return begin_at(place, bytes, LtPreference());
}
DEMARC_SHOWN Code cublasLtMatmulPreferenceDestroy(LtPreference* preference) {
  return end(preference);
}
DEMARC_SHOWN Code cublasLtMatmulPreferenceSetAttribute(LtPreference* preference, int number,
                                                       const void* value, std::size_t bytes) {
  return set_attribute("cublasLtMatmulPreferenceSetAttribute", preference_attributes(), preference,
                       number, value, bytes);
}
DEMARC_SHOWN Code cublasLtMatmulPreferenceGetAttribute(LtPreference* preference, int number,
                                                       void* value, std::size_t bytes,
                                                       std::size_t* written) {
  return get_attribute("cublasLtMatmulPreferenceGetAttribute", preference_attributes(), preference,
                       number, value, bytes, written);
}

// There is one algorithm, which needs no workspace.
DEMARC_SHOWN Code cublasLtMatmulAlgoGetHeuristic(LtHandle* handle, LtProduct* of, LtMatrix* a,
                                                 LtMatrix* b, LtMatrix* c, LtMatrix* d,
                                                 LtPreference* preference, int asked,
                                                 LtResult* results, int* returned) {
  if (!is_known(handle)) return not_initialized;
  if (preference == nullptr || asked < 1 || results == nullptr || returned == nullptr) {
    return invalid_value;
  }
  *returned = 0;
  Product product;
  if (const Code code = find_product("cublasLtMatmulAlgoGetHeuristic", of, {a, b, c, d}, product);
      code != success) {
    return code;
  }
  results[0] = {};
  results[0].algorithm.data[0] = algorithm_mark;
  results[0].waves = 1;
  *returned = 1;
  return success;
}

DEMARC_SHOWN Code cublasLtMatmul(LtHandle* handle, LtProduct* of, const void* alpha, const void* a,
                                 LtMatrix* of_a, const void* b, LtMatrix* of_b, const void* beta,
                                 const void* c, LtMatrix* of_c, void* d, LtMatrix* of_d,
                                 const LtAlgorithm* algorithm, void* workspace,
                                 std::size_t workspace_bytes, Stream stream) {
  static_cast<void>(workspace);
  static_cast<void>(workspace_bytes);
  if (!is_known(handle)) return not_initialized;
  if (algorithm != nullptr && algorithm->data[0] != algorithm_mark) {
    return refuse("cublasLtMatmul",
                  "its algorithm is not one that cublasLtMatmulAlgoGetHeuristic() gave");
  }
  Product product;
  if (const Code code = find_product("cublasLtMatmul", of, {of_a, of_b, of_c, of_d}, product);
      code != success) {
    return code;
  }
  if ((of->epilogue & epilogue_with_bias) != 0 && product.bias == nullptr) return invalid_value;
  product.alpha = alpha;
  product.beta = beta;
  product.a.at = a;
  product.b.at = b;
  product.c.at = c;
  product.d.at = d;
  return run(product, stream);
}
// NOLINTEND(readability-identifier-naming)

}  // namespace demarc::blas
