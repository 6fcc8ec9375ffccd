// The kernels of products on tensor cores, by type. "d": along the depth, "a": across it, X first.
#pragma once

#include "tile_product.cuh"

#define DEMARC_BLAS_TILES(Type, Tile, name, x, w)                                \
  extern "C" __global__ void __launch_bounds__(demarc::blas::Tile::threads,      \
                                               demarc::blas::Tile::blocks)       \
      name(const demarc::blas::ProductArguments p) {                             \
    demarc::blas::tile_product<demarc::blas::Type, demarc::blas::Tile, x, w>(p); \
  }
#define DEMARC_BLAS_ALL_TILES(Type, Tile, name)         \
  DEMARC_BLAS_TILES(Type, Tile, name##_dd, true, true)  \
  DEMARC_BLAS_TILES(Type, Tile, name##_da, true, false) \
  DEMARC_BLAS_TILES(Type, Tile, name##_ad, false, true) \
  DEMARC_BLAS_TILES(Type, Tile, name##_aa, false, false)
