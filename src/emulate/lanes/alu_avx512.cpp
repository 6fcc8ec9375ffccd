#define DEMARC_ISA avx512
#include "alu.inl"
