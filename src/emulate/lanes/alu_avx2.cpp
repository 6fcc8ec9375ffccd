#define DEMARC_ISA avx2
#include "alu.inl"
