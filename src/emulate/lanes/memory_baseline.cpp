#define DEMARC_ISA baseline
#include "memory.inl"
