// Checks products, chooses their kernels and launches them.
#include "product.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "kernels.hpp"
#include "refusals.hpp"

namespace demarc::blas {
namespace {

constexpr std::int64_t max_size = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t max_elements = std::int64_t{1} << 42;  // so that a grid has all blocks
constexpr std::int64_t max_bias_bytes = 0xffffffff;
constexpr std::int64_t max_batches_of_grid = 65535;
constexpr std::int64_t few = 16;  // rows of a flat tile
constexpr std::uint32_t piece_bytes = 16;
constexpr int sm_count = 16;          // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int max_shared_bytes = 97;  // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN

struct Combination {
  ComputeType compute;
  DataType inputs;
  DataType out;
  DataType scale;
  Arithmetic arithmetic;
};
// What cuBLAS's table of GemmEx has for real numbers, but for integers, FP8, the compute types that
// round f32 to 16 bits, and pedantic ones of 16 bits. Sums of f16 are kept in f32 everywhere.
constexpr Combination combinations[] = {
    {compute_16f, f16, f16, f16, Arithmetic::f16},
    {compute_32f, f16, f16, f32, Arithmetic::f16},
    {compute_32f, f16, f32, f32, Arithmetic::f16},
    {compute_32f, bf16, bf16, f32, Arithmetic::bf16},
    {compute_32f, bf16, f32, f32, Arithmetic::bf16},
    {compute_32f, f32, f32, f32, Arithmetic::f32},
    {compute_32f_pedantic, f32, f32, f32, Arithmetic::f32},
    {compute_32f_fast_tf32, f32, f32, f32, Arithmetic::tf32},
    {compute_64f, f64, f64, f64, Arithmetic::f64},
    {compute_64f_pedantic, f64, f64, f64, Arithmetic::f64},
};

struct ArithmeticRow {
  const char* name;
  bool tensor_cores;
};
// By Arithmetic.
constexpr ArithmeticRow arithmetics[] = {
    {"f16", true}, {"bf16", true}, {"tf32", true}, {"f32", false}, {"f64", false}};

// As tile_product.cuh has them.
struct TileRow {
  const char* name;
  std::uint32_t rows, columns, stages, threads;
};
constexpr TileRow large_tile{"_large", 128, 256, 3, 256};
constexpr TileRow wide_tile{"", 128, 128, 3, 128};
constexpr TileRow flat_tile{"_flat", 16, 64, 6, 128};

// As NVIDIA's libraries, whatever the program asks for.
bool allows_tf32() {
  static const bool allowed = [] {
    const char* const value = std::getenv("NVIDIA_TF32_OVERRIDE");
    return value == nullptr || std::string_view(value) != "0";
  }();
  return allowed;
}

bool is_operation(Operation operation) {
  return operation == op_n || operation == op_t || operation == op_c;
}

float half_to_float(Half half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
  const std::uint32_t exponent = half >> 10U & 0x1fU;
  const std::uint32_t fraction = half & 0x3ffU;
  std::uint32_t bits = 0;
  if (exponent == 0x1fU) {
    bits = 0x7f800000U | fraction << 13U;
  } else if (exponent != 0) {
    bits = (exponent + 112U) << 23U | fraction << 13U;
  } else {
    const float small = static_cast<float>(fraction) * 0x1p-24F;
    std::memcpy(&bits, &small, sizeof bits);
  }
  bits |= sign;
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

double number_at(const void* at, DataType type) {
  if (type == f64) return *static_cast<const double*>(at);
  if (type == f32) return static_cast<double>(*static_cast<const float*>(at));
  return static_cast<double>(half_to_float(*static_cast<const Half*>(at)));
}

std::uint64_t address_of(const void* at) {
  return reinterpret_cast<std::uint64_t>(at);
}

Matrix matrix_of(const Operand& operand, bool arrays) {
  const std::uint64_t bytes = bytes_of_type(operand.type);
  return {address_of(operand.at), arrays ? 0 : static_cast<std::uint64_t>(operand.stride) * bytes,
          static_cast<std::uint64_t>(operand.pitch)};
}

bool is_aligned(const Matrix& matrix, std::uint64_t bytes) {
  return ((matrix.at | matrix.stride | matrix.pitch * bytes) % piece_bytes) == 0;
}

}  // namespace

Code check(const Product& p) {
  if (!is_operation(p.a_operation) || !is_operation(p.b_operation)) {
    return refuse(p.function, "an operand's operation is neither N nor T nor C");
  }
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batches < 0) return invalid_value;
  const std::int64_t rows_of_a = p.a_operation == op_n ? p.m : p.k;
  const std::int64_t rows_of_b = p.b_operation == op_n ? p.k : p.n;
  const auto fits = [](const Operand& operand, std::int64_t rows) {
    return operand.pitch >= std::max<std::int64_t>(1, rows);
  };
  if (!fits(p.a, rows_of_a) || !fits(p.b, rows_of_b) || !fits(p.c, p.m) || !fits(p.d, p.m)) {
    return invalid_value;
  }
  if (std::max({p.m, p.n, p.k}) > max_size) {
    return refuse(p.function, "a matrix has more than 2147483647 rows or columns");
  }
  if (p.m * p.n > max_elements) return refuse(p.function, "a result has more than 2^42 elements");
  if (p.bias != nullptr && p.m * bytes_of_type(p.bias_type) > max_bias_bytes) {
    return refuse(p.function, "a bias has more than 4294967295 bytes");
  }
  return success;
}

namespace {

struct Choice {
  std::string module;  // fewer kernels of one are loaded sooner
  std::string kernel;
  KernelShape shape;
};

std::uint32_t blocks_for(std::uint64_t count, std::uint64_t of_one) {
  return static_cast<std::uint32_t>((count + of_one - 1) / of_one);
}

std::uint32_t tiles_of(const ProductArguments& p, const TileRow& tile) {
  return blocks_for(p.rows, tile.rows) * blocks_for(p.columns, tile.columns);
}

std::uint32_t cores_of_card() {
  return static_cast<std::uint32_t>(card_attribute(sm_count, 1));
}

std::uint32_t shared_bytes_of(const TileRow& tile) {
  return tile.stages * 128 * (tile.rows + tile.columns);
}

// The largest tiles that a block has room for and of which each SM gets one.
const TileRow& tile_of(const ProductArguments& p, std::int64_t batches) {
  if (std::min(p.rows, p.columns) <= few) return flat_tile;
  const bool fits =
      card_attribute(max_shared_bytes, 0) >= static_cast<int>(shared_bytes_of(large_tile));
  return fits && tiles_of(p, large_tile) * batches >= cores_of_card() ? large_tile : wide_tile;
}

// Rows become columns: D lies along its rows then.
void turn(ProductArguments& p) {
  std::swap(p.x, p.w);
  std::swap(p.x_along_depth, p.w_along_depth);
  std::swap(p.rows, p.columns);
  p.transposed_out = 1;
}

// Whether few_plain.cuh takes a product: up to 16 rows or columns, and operands that lie along the
// depth at multiples of 16 bytes. Then rows are what it has few of.
bool turns_few(ProductArguments& p) {
  constexpr std::uint64_t bytes = sizeof(float);
  if (p.pointers != 0 || p.x_along_depth == 0 || p.w_along_depth == 0 ||
      std::min(p.rows, p.columns) > few || !is_aligned(p.x, bytes) || !is_aligned(p.w, bytes)) {
    return false;
  }
  if (p.rows > p.columns) turn(p);
  return true;
}

Choice choose(ProductArguments& p, const Product& product) {
  const ArithmeticRow& row = arithmetics[static_cast<int>(product.arithmetic)];
  Choice choice;
  if (product.arithmetic == Arithmetic::f32 && turns_few(p)) {
    return {"blas_plain",
            p.rows > 4 ? "demarc_f32_few_16" : "demarc_f32_few_4",
            {{blocks_for(p.columns, 32), 1, 1}, 256, 0}};
  }
  if (!row.tensor_cores) {
    const std::uint32_t side = product.arithmetic == Arithmetic::f32 ? 128 : 64;
    choice.module = "blas_plain";
    choice.kernel = std::string("demarc_") + row.name;
    choice.shape = {{blocks_for(p.rows, side) * blocks_for(p.columns, side), 1, 1}, 256, 0};
    return choice;
  }
  const TileRow& tile = tile_of(p, product.batches);
  if (&tile == &flat_tile && p.rows > p.columns) turn(p);
  choice.module = std::string("blas_") + row.name + tile.name;
  choice.kernel = std::string("demarc_") + row.name + tile.name +
                  (p.x_along_depth != 0 ? "_d" : "_a") + (p.w_along_depth != 0 ? "d" : "a");
  choice.shape = {{tiles_of(p, tile), 1, 1}, tile.threads, shared_bytes_of(tile)};
  return choice;
}

void advance(Matrix& matrix, bool arrays, std::int64_t batches) {
  matrix.at += static_cast<std::uint64_t>(batches) * (arrays ? sizeof(void*) : matrix.stride);
}

}  // namespace

std::uint32_t bytes_of_type(DataType type) {
  return type == f64 ? 8 : type == f32 ? 4 : 2;
}

bool find_arithmetic(const char* function, ComputeType compute, DataType a, DataType b, DataType c,
                     MathMode mode, Arithmetic& arithmetic, DataType& scale) {
  for (const Combination& row : combinations) {
    if (row.compute != compute || row.inputs != a || row.inputs != b || row.out != c) continue;
    arithmetic = row.arithmetic;
    scale = row.scale;
    const MathMode without_flag = mode & ~disallow_reduced_precision;
    if (without_flag == pedantic_math && (a == f16 || a == bf16)) {
      refuse(function, "products of 16 bits have no pedantic arithmetic here");
      return false;
    }
    if (compute == compute_32f && arithmetic == Arithmetic::f32 && without_flag == tf32_math) {
      arithmetic = Arithmetic::tf32;
    }
    if (arithmetic == Arithmetic::tf32 && !allows_tf32()) arithmetic = Arithmetic::f32;
    return true;
  }
  refuse(function, "it is not computed with the compute type " + std::to_string(compute) +
                       " and the data types " + std::to_string(a) + ", " + std::to_string(b) +
                       " and " + std::to_string(c) +
                       " (numbers of cublasComputeType_t and cudaDataType_t)");
  return false;
}

Code run(const Product& product, Stream stream) {
  if (const Code code = check(product); code != success) return code;
  if (product.alpha == nullptr || product.beta == nullptr) return invalid_value;
  if (product.m == 0 || product.n == 0) return success;
  if (current_context() == nullptr) return not_initialized;
  ProductArguments p = {};
  p.rows = static_cast<unsigned>(product.n);
  p.columns = static_cast<unsigned>(product.m);
  p.depth = static_cast<unsigned>(product.k);
  p.x = matrix_of(product.b, product.arrays);
  p.w = matrix_of(product.a, product.arrays);
  p.c = matrix_of(product.c, product.arrays);
  p.d = matrix_of(product.d, product.arrays);
  p.x_along_depth = product.b_operation == op_n ? 1 : 0;
  p.w_along_depth = product.a_operation == op_n ? 0 : 1;
  p.pointers = product.arrays ? 1 : 0;
  p.out = product.d.type;
  p.scale = product.scale;
  if (product.scale_pointers == device_pointers) {
    p.alpha_at = address_of(product.alpha);
    p.beta_at = address_of(product.beta);
  } else {
    p.alpha = number_at(product.alpha, product.scale);
    p.beta = number_at(product.beta, product.scale);
  }
  const bool host = product.scale_pointers == host_pointers;
  const bool multiplies = p.depth != 0 && (!host || p.alpha != 0);
  if (p.d.at == 0 || (host && p.beta != 0 && p.c.at == 0) ||
      (host && multiplies && (p.x.at == 0 || p.w.at == 0))) {
    return invalid_value;
  }
  if (host && p.beta == 0) p.c = p.d;
  p.bias_at = address_of(product.bias);
  p.bias = product.bias_type;
  p.activation = product.activation;
  Choice choice = choose(p, product);
  for (std::int64_t left = product.batches; left > 0;) {
    const std::int64_t now = std::min(left, max_batches_of_grid);
    choice.shape.grid[2] = static_cast<std::uint32_t>(now);
    const Code code =
        launch(choice.module.c_str(), choice.kernel.c_str(), choice.shape, stream, &p);
    if (code != success) return code;
    for (Matrix* matrix : {&p.x, &p.w, &p.c, &p.d}) advance(*matrix, product.arrays, now);
    left -= now;
  }
  return success;
}

}  // namespace demarc::blas
