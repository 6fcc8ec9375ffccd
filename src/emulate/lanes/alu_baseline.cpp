// Compiles the lane-wise micro-ops for every CPU.
#define DEMARC_ISA baseline
#include "alu.inl"
