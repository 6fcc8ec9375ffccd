// Compiles the steps of matrix products for AVX2.
#define DEMARC_ISA avx2
#include "matrix.inl"
