// Compiles the lane-wise micro-ops for AVX2.
#define DEMARC_ISA avx2
#include "alu.inl"
