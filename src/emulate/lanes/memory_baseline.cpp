// Compiles loads and stores for every CPU.
#define DEMARC_ISA baseline
#include "memory.inl"
