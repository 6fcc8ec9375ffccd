#define DEMARC_ISA baseline
#include "alu.inl"
