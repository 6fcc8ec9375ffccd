// Products of f32 and f64 matrices in their own arithmetic.
// demarc: isa 8.3
// demarc: sm 80
// demarc: needs nvcc
#include "few_plain.cuh"
#include "plain_product.cuh"

extern "C" __global__ void __launch_bounds__(demarc::blas::plain_threads, 1)
    demarc_f32(const demarc::blas::ProductArguments p) {
  demarc::blas::plain_product<float, 8>(p);
}
extern "C" __global__ void __launch_bounds__(demarc::blas::plain_threads, 2)
    demarc_f64(const demarc::blas::ProductArguments p) {
  demarc::blas::plain_product<double, 4>(p);
}
extern "C" __global__ void __launch_bounds__(demarc::blas::few_plain_threads, 2)
    demarc_f32_few_4(const demarc::blas::ProductArguments p) {
  demarc::blas::few_plain<4>(p);
}
extern "C" __global__ void __launch_bounds__(demarc::blas::few_plain_threads, 2)
    demarc_f32_few_16(const demarc::blas::ProductArguments p) {
  demarc::blas::few_plain<16>(p);
}
