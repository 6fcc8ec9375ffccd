// The functions of cuBLAS and cuBLASLt that libdemarc_blas.so lacks. Each is refused by its name: a
// program has handles of this library, which must not reach NVIDIA's.
#include "refusals.hpp"

// NOLINTBEGIN(readability-identifier-naming): the names are NVIDIA's
// Their parameters stay where the caller has put them.
#define DEMARC_BLAS_LACKS(name)                 \
  DEMARC_SHOWN demarc::blas::Code name() {      \
    return demarc::blas::refuse_lacking(#name); \
  }
#include "lacking.def"
#undef DEMARC_BLAS_LACKS
// NOLINTEND(readability-identifier-naming)
