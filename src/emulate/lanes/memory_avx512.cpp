#define DEMARC_ISA avx512
#include "memory.inl"
