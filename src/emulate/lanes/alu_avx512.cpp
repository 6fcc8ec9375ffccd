// Compiles the lane-wise micro-ops for AVX-512.
#define DEMARC_ISA avx512
#include "alu.inl"
