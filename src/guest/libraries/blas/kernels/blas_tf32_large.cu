// Products of f32 matrices that are rounded to tf32, with sums of f32, by large tiles.
// demarc: isa 8.3
// demarc: sm 80
// demarc: needs nvcc
#include "tensor_products.cuh"

DEMARC_BLAS_ALL_TILES(Tf32, LargeTile, demarc_tf32_large)
