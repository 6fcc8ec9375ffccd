#define DEMARC_ISA avx512
#include "matrix.inl"
