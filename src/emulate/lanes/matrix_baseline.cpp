// Compiles the steps of matrix products for every CPU.
#define DEMARC_ISA baseline
#include "matrix.inl"
