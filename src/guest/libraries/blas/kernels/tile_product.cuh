// Products on tensor cores: a block of 128 threads makes a tile of D, each warp a quarter of it,
// from stages of shared memory that cp.async fills.
//
// A stage has 128 bytes of the depth of each row of X and column of W, in pieces of 16 bytes. Along
// the depth a row has 8 pieces; across it, each step of the depth has those of all rows. Pieces are
// permuted so that those that ldmatrix reads at once lie in different banks.
#pragma once

#include "epilogue.cuh"
#include "fragments.cuh"

namespace demarc::blas {

// Tiles of many rows, and one for up to 16 rows, where the memory decides. The larger a tile, the
// fewer accesses per multiplication.
struct LargeTile {
  static constexpr u32 rows = 128, columns = 256, stages = 3;
  static constexpr u32 threads = 256, blocks = 1;  // blocks per SM
  static constexpr u32 warps_across = 4;
  static constexpr u32 own_rows = 4, own_columns = 8;  // a warp's part, in fragments of 16 and 8
};
struct WideTile {
  static constexpr u32 rows = 128, columns = 128, stages = 3;
  static constexpr u32 threads = 128, blocks = 2;
  static constexpr u32 warps_across = 2;
  static constexpr u32 own_rows = 4, own_columns = 8;
};
struct FlatTile {
  static constexpr u32 rows = 16, columns = 64, stages = 6;
  static constexpr u32 threads = 128, blocks = 2;
  static constexpr u32 warps_across = 4;
  static constexpr u32 own_rows = 1, own_columns = 2;
};

// One of the two matrices, as one thread copies it.
template <class Type, bool AlongDepth, u32 Lines, u32 Threads>
struct Side {
  static constexpr u32 pieces = AlongDepth ? 8 : Lines * Type::bytes / 16;  // per line
  static constexpr u32 lines_at_once = Threads / pieces;
  static constexpr u32 copies = Lines * 8 / Threads;
  static constexpr u32 depth_step = 128 / Type::bytes;

  u64 base;  // address of its piece in the first line of the next stage
  u64 step;  // bytes to its next line
  u32 line;  // its first one
  u32 piece;
  u32 first;  // row or column of the piece's first element, across the depth
  u32 count;  // rows or columns of the matrix
  u64 origin;
  bool aligned;  // all pieces begin at multiples of 16 bytes

  __device__ __forceinline__ Side(u64 at, u64 pitch, u32 begin, u32 all)
      : line(threadIdx.x / pieces), piece(threadIdx.x % pieces), count(all), origin(at) {
    step = pitch * Type::bytes * lines_at_once;
    aligned = ((at | pitch * Type::bytes) & 15U) == 0;
    if (AlongDepth) {
      first = begin + line;
      base = at + (u64{first} * pitch * Type::bytes) + piece * 16U;
    } else {
      first = begin + piece * (16 / Type::bytes);
      base = at + (u64{line} * pitch + first) * Type::bytes;
    }
  }
  // Elements of the i-th piece that the matrix has; `left`: steps of the depth from this stage on.
  __device__ __forceinline__ u32 valid(u32 i, int left) const {
    int n;
    if (AlongDepth) {
      n = first + i * lines_at_once < count ? left - static_cast<int>(piece * (16 / Type::bytes))
                                            : 0;
    } else {
      n = static_cast<int>(line + i * lines_at_once) < left
              ? static_cast<int>(count) - static_cast<int>(first)
              : 0;
    }
    return n < 0 ? 0 : n > 16 / Type::bytes ? 16 / Type::bytes : static_cast<u32>(n);
  }
  __device__ __forceinline__ void copy(u32 shared, int left, u64 pitch) {
    u64 from = base;
    if (aligned) {
#pragma unroll
      for (u32 i = 0; i < copies; ++i) {
        const u32 elements = valid(i, left);
        copy_to_shared(shared + piece_at<Type, AlongDepth, Lines>(line + i * lines_at_once, piece),
                       elements == 0 ? origin : from, elements * Type::bytes);
        from += step;
      }
    } else {
#pragma unroll 1
      for (u32 i = 0; i < copies; ++i) {
        const u32 to = shared + piece_at<Type, AlongDepth, Lines>(line + i * lines_at_once, piece);
        const u32 elements = valid(i, left);
#pragma unroll 1
        for (u32 j = 0; j < 16 / Type::bytes; ++j) {
          if (Type::bytes == 2) {
            to_shared2(to + 2 * j, j < elements ? load2(from + 2 * j) : u16{0});
          } else {
            to_shared4(to + 4 * j, j < elements ? load4(from + 4 * j) : 0);
          }
        }
        from += step;
      }
    }
    base += AlongDepth ? 128 : u64{depth_step} * pitch * Type::bytes;
  }
};

template <class Type, bool XAlong, bool WAlong, class Tile>
static __device__ __forceinline__ void multiply_stage(
    u32 x, u32 w, u32 row, u32 column, float (&sums)[Tile::own_rows][Tile::own_columns][4]) {
#pragma unroll
  for (u32 k = 0; k < 4; ++k) {
    u32 a[Tile::own_rows][4];
#pragma unroll
    for (u32 i = 0; i < Tile::own_rows; ++i) {
      load_a<Type, XAlong, Tile::rows>(x, row + 16 * i, k, a[i]);
    }
#pragma unroll
    for (u32 j = 0; j < Tile::own_columns / 2; ++j) {
      u32 low[2];
      u32 high[2];
      load_b<Type, WAlong, Tile::columns>(w, column + 16 * j, k, low, high);
#pragma unroll
      for (u32 i = 0; i < Tile::own_rows; ++i) {
        Type::multiply(sums[i][2 * j], a[i], low);
        Type::multiply(sums[i][2 * j + 1], a[i], high);
      }
    }
  }
}

// Tiles in an order in which neighbours in time share rows and columns.
struct TilePlace {
  u32 row;
  u32 column;
};
static __device__ __forceinline__ TilePlace place_of_tile(u32 rows, u32 columns) {
  constexpr u32 group = 8;
  const u32 in_group = group * columns;
  const u32 first = blockIdx.x / in_group * group;
  const u32 high = rows - first < group ? rows - first : group;
  const u32 within = blockIdx.x % in_group;
  return {first + within % high, within / high};
}

template <class Tile>
constexpr u32 sum_pitch = Tile::columns + 4;  // floats, of the sums' rows in shared memory

// The sums go through shared memory, where each thread gets neighbours of a row.
template <class Tile>
static __device__ __forceinline__ void store_tile(const ProductArguments& p, u64 c, u64 d,
                                                  u32 shared, u32 first_row, u32 first_column) {
  const Scales scales = scales_of(p);
  const bool wide = is_wide(p, c, d);
#pragma unroll 1
  for (u32 i = threadIdx.x; i < Tile::rows * Tile::columns / 8; i += Tile::threads) {
    const u32 line = i / (Tile::columns / 8);
    const u32 place = i % (Tile::columns / 8) * 8;
    const u32 row = first_row + line;
    const u32 column = first_column + place;
    if (row >= p.rows || column >= p.columns) continue;
    const uint4 low = shared16(shared + (line * sum_pitch<Tile> + place) * 4);
    const uint4 high = shared16(shared + (line * sum_pitch<Tile> + place) * 4 + 16);
    float v[8] = {bits_to_float(low.x),  bits_to_float(low.y),  bits_to_float(low.z),
                  bits_to_float(low.w),  bits_to_float(high.x), bits_to_float(high.y),
                  bits_to_float(high.z), bits_to_float(high.w)};
    const u32 left = p.columns - column;
    if (wide && (left >= 8 || (left == 4 && p.out == f32))) {
      finish_wide(p, scales, c, d, row, column, v, left < 8 ? left : 8);
      continue;
    }
#pragma unroll 1
    for (u32 j = 0; j < 8 && j < left; ++j) {
      const float sum =
          bits_to_float(shared_u32(shared + (line * sum_pitch<Tile> + place + j) * 4));
      finish(p, scales, c, d, row, column + j, sum);
    }
  }
}

extern __shared__ uint4 product_stages[];

static __device__ __forceinline__ u32 shared_address(const void* of) {
  u64 address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(of));
  return static_cast<u32>(address);
}

template <class Tile>
static __device__ __forceinline__ void keep_sums(
    u32 shared, u32 warp_row, u32 warp_column,
    const float (&sums)[Tile::own_rows][Tile::own_columns][4]) {
  const u32 lane = threadIdx.x % 32;
#pragma unroll
  for (u32 i = 0; i < Tile::own_rows; ++i) {
#pragma unroll
    for (u32 j = 0; j < Tile::own_columns; ++j) {
#pragma unroll
      for (u32 h = 0; h < 2; ++h) {
        const u32 line = warp_row + 16 * i + lane / 4 + 8 * h;
        const u32 place = warp_column + 8 * j + lane % 4 * 2;
        const u32 at = shared + (line * sum_pitch<Tile> + place) * 4;
        to_shared4(at, float_to_bits(sums[i][j][2 * h]));
        to_shared4(at + 4, float_to_bits(sums[i][j][2 * h + 1]));
      }
    }
  }
}

// Without alpha nothing of X and W is read, as with cuBLAS.
static __device__ __forceinline__ u32 depth_of(const ProductArguments& p) {
  return scales_of(p).alpha == 0.0f ? 0 : p.depth;
}

template <class Type, class Tile, bool XAlong, bool WAlong>
static __device__ __forceinline__ void tile_product(const ProductArguments& p) {
  constexpr u32 depth_step = 128 / Type::bytes;
  const u32 shared = shared_address(product_stages);
  constexpr u32 stages = Tile::stages;
  constexpr u32 side_bytes = Tile::rows * 128;  // bytes of X
  constexpr u32 stage_bytes = side_bytes + Tile::columns * 128;
  const TilePlace at = place_of_tile((p.rows + Tile::rows - 1) / Tile::rows,
                                     (p.columns + Tile::columns - 1) / Tile::columns);
  const u32 first_row = at.row * Tile::rows;
  const u32 first_column = at.column * Tile::columns;
  const u32 depth = depth_of(p);
  const u32 steps = (depth + depth_step - 1) / depth_step;
  const u32 warp_row = threadIdx.x / 32 / Tile::warps_across * 16 * Tile::own_rows;
  const u32 warp_column = threadIdx.x / 32 % Tile::warps_across * 8 * Tile::own_columns;
  float sums[Tile::own_rows][Tile::own_columns][4] = {};
  {
    Side<Type, XAlong, Tile::rows, Tile::threads> x(place_of(p.x, p.pointers, blockIdx.z),
                                                    p.x.pitch, first_row, p.rows);
    Side<Type, WAlong, Tile::columns, Tile::threads> w(place_of(p.w, p.pointers, blockIdx.z),
                                                       p.w.pitch, first_column, p.columns);
    int left = static_cast<int>(depth);
#pragma unroll 1
    for (u32 i = 0; i + 1 < stages; ++i) {
      if (i < steps) {
        x.copy(shared + i * stage_bytes, left, p.x.pitch);
        w.copy(shared + i * stage_bytes + side_bytes, left, p.w.pitch);
      }
      end_copy_group();
      left -= static_cast<int>(depth_step);
    }
    u32 read = 0;
    u32 write = stages - 1;
#pragma unroll 1
    for (u32 step = 0; step < steps; ++step) {
      wait_for_copies<stages - 2>();
      __syncthreads();
      if (step + stages - 1 < steps) {
        x.copy(shared + write * stage_bytes, left, p.x.pitch);
        w.copy(shared + write * stage_bytes + side_bytes, left, p.w.pitch);
      }
      end_copy_group();
      left -= static_cast<int>(depth_step);
      multiply_stage<Type, XAlong, WAlong, Tile>(shared + read * stage_bytes,
                                                 shared + read * stage_bytes + side_bytes, warp_row,
                                                 warp_column, sums);
      read = read + 1 == stages ? 0 : read + 1;
      write = write + 1 == stages ? 0 : write + 1;
    }
  }
  wait_for_copies<0>();
  __syncthreads();
  keep_sums<Tile>(shared, warp_row, warp_column, sums);
  __syncthreads();
  store_tile<Tile>(p, place_of(p.c, p.pointers, blockIdx.z), place_of(p.d, p.pointers, blockIdx.z),
                   shared, first_row, first_column);
}

}  // namespace demarc::blas
