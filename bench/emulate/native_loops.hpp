// The loop nests of the benchmarked kernels, compiled for this machine: what emulation is compared
// with.
#pragma once

#include <cstddef>

namespace demarc::bench {

void native_vecadd(const float* a, const float* b, float* c, std::size_t n);
void native_matmul(const float* a, const float* b, float* c, std::size_t n);
void native_stencil(const float* in, float* out, std::size_t width, std::size_t height);
float native_reduction(const float* in, std::size_t n);

// sums[8][8] += a[8][depth] * b[depth][8]: as many multiply-adds as the processor can begin.
inline constexpr std::size_t native_depth = 256;
void native_products(const double* a, const double* b, double* sums);

}  // namespace demarc::bench
