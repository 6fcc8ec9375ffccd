#define DEMARC_ISA baseline
#include "matrix.inl"
