// Compiles the steps of matrix products for AVX-512.
#define DEMARC_ISA avx512
#include "matrix.inl"
