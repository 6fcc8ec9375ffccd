// The kernels of products on tensor cores, by type. "d": along the depth, "a": across it, X first.
#pragma once

#include "few_product.cuh"
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
#define DEMARC_BLAS_FEW(Type, name, tiles, eights)                           \
  extern "C" __global__ void __launch_bounds__(demarc::blas::few_threads, 2) \
      name(const demarc::blas::ProductArguments p) {                         \
    demarc::blas::few_product<demarc::blas::Type, tiles, eights>(p);         \
  }
#define DEMARC_BLAS_FEW_ROWS(Type, name)                      \
  DEMARC_BLAS_ALL_TILES(Type, FlatTile, demarc_##name##_flat) \
  DEMARC_BLAS_FEW(Type, demarc_##name##_few16_8, 1, 1)        \
  DEMARC_BLAS_FEW(Type, demarc_##name##_few32_8, 2, 1)        \
  DEMARC_BLAS_FEW(Type, demarc_##name##_few16_16, 1, 2)       \
  DEMARC_BLAS_FEW(Type, demarc_##name##_few32_16, 2, 2)
