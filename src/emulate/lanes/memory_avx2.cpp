#define DEMARC_ISA avx2
#include "memory.inl"
