// Compiles loads and stores for AVX-512.
#define DEMARC_ISA avx512
#include "memory.inl"
