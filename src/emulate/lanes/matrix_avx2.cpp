#define DEMARC_ISA avx2
#include "matrix.inl"
