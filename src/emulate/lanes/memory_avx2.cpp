// Compiles loads and stores for AVX2.
#define DEMARC_ISA avx2
#include "memory.inl"
