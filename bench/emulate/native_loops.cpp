// Runs the loop nests of the benchmarked kernels natively, which emulation is compared with.
#include "native_loops.hpp"

#include <cstring>

namespace demarc::bench {

void native_vecadd(const float* a, const float* b, float* c, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

void native_matmul(const float* a, const float* b, float* c, std::size_t n) {
  std::memset(c, 0, n * n * sizeof(float));
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t k = 0; k < n; ++k) {
      const float factor = a[row * n + k];
      for (std::size_t column = 0; column < n; ++column)
        c[row * n + column] += factor * b[k * n + column];
    }
  }
}

void native_stencil(const float* in, float* out, std::size_t width, std::size_t height) {
  for (std::size_t x = 0; x < width; ++x) {
    out[x] = in[x];
    out[(height - 1) * width + x] = in[(height - 1) * width + x];
  }
  for (std::size_t y = 1; y + 1 < height; ++y) {
    const float* row = in + y * width;
    out[y * width] = row[0];
    out[y * width + width - 1] = row[width - 1];
    for (std::size_t x = 1; x + 1 < width; ++x) {
      out[y * width + x] =
          0.5F * row[x] +
          0.125F * (row[x - 1] + row[x + 1] + in[(y - 1) * width + x] + in[(y + 1) * width + x]);
    }
  }
}

float native_reduction(const float* in, std::size_t n) {
  float sums[16] = {};
  for (std::size_t i = 0; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) sums[j] += in[i + j];
  }
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

void native_products(const double* a, const double* b, double* sums) {
  using Row [[gnu::vector_size(64)]] = double;
  Row rows[8];
  std::memcpy(rows, sums, sizeof rows);
  for (std::size_t k = 0; k < native_depth; ++k) {
    Row factors;
    std::memcpy(&factors, b + k * 8, sizeof factors);
#pragma GCC unroll 8
    for (std::size_t row = 0; row < 8; ++row) {
      const double factor = a[row * native_depth + k];
      for (std::size_t i = 0; i < 8; ++i) {
        rows[row][i] = __builtin_fma(factor, factors[i], rows[row][i]);
      }
    }
  }
  std::memcpy(sums, rows, sizeof rows);
}

}  // namespace demarc::bench
