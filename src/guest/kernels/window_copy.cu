// Copies and fills of rows of bytes, at any alignment. As they stand they work on plain memory;
// rewritten (ptx/colored.hpp) for all accesses, for loads or for stores they reach a share of a
// coloured pool on both sides or on one. They have no variables and no local memory.
//
// Blocks along x share the bytes of a row, blocks along y the rows; any grid does all of it.
#include "demarc_kernel.cuh"

using u64 = unsigned long long;
using u32 = unsigned;
using u16 = unsigned short;
using u8 = unsigned char;

namespace {

__device__ __forceinline__ u64 thread_x() {
  return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ u64 threads_x() {
  return static_cast<u64>(gridDim.x) * blockDim.x;
}
__device__ __forceinline__ u64 thread_y() {
  return static_cast<u64>(blockIdx.y) * blockDim.y + threadIdx.y;
}
__device__ __forceinline__ u64 threads_y() {
  return static_cast<u64>(gridDim.y) * blockDim.y;
}

__device__ __forceinline__ u64 address_of(const u8* pointer) {
  return reinterpret_cast<u64>(pointer);
}

// A row whose sides lie equally within a Unit: whole Units, and single bytes at its ends.
template <class Unit>
__device__ __forceinline__ void copy_row(u8* target, const u8* source, u64 width) {
  const u64 ahead = address_of(target) & (sizeof(Unit) - 1);
  const u64 end = ahead + width;
  target -= ahead;
  source -= ahead;
#pragma unroll 1
  for (u64 at = sizeof(Unit) * thread_x(); at < end; at += sizeof(Unit) * threads_x()) {
    if (at >= ahead && at + sizeof(Unit) <= end) {
      *reinterpret_cast<Unit*>(target + at) = *reinterpret_cast<const Unit*>(source + at);
      continue;
    }
    const u64 first = at < ahead ? ahead : at;
    const u64 behind = at + sizeof(Unit) < end ? at + sizeof(Unit) : end;
#pragma unroll 1
    for (u64 i = first; i < behind; ++i) target[i] = source[i];
  }
}

}  // namespace

// `height` rows of `width` bytes; row i begins i pitches behind the first. Sides do not overlap.
extern "C" __global__ void __launch_bounds__(256)
    demarc_copy2d(u8* target, u64 target_pitch, const u8* source, u64 source_pitch, u64 width,
                  u64 height) {
#pragma unroll 1
  for (u64 row = thread_y(); row < height; row += threads_y()) {
    u8* to = target + row * target_pitch;
    const u8* from = source + row * source_pitch;
    const u64 apart = address_of(to) - address_of(from);
    if (apart % 16 == 0) {
      copy_row<uint4>(to, from, width);
    } else if (apart % 8 == 0) {
      copy_row<u64>(to, from, width);
    } else if (apart % 4 == 0) {
      copy_row<u32>(to, from, width);
    } else if (apart % 2 == 0) {
      copy_row<u16>(to, from, width);
    } else {
      copy_row<u8>(to, from, width);
    }
  }
}

// `height` rows of `width` elements of 1, 2 or 4 bytes, which get the low bytes of `value`.
extern "C" __global__ void __launch_bounds__(256)
    demarc_fill2d(u8* target, u64 pitch, u32 value, u32 element_bytes, u64 width, u64 height) {
  if (element_bytes == 1) value = (value & 0xffU) * 0x01010101U;
  if (element_bytes == 2) value = (value & 0xffffU) * 0x00010001U;
  const u64 twice = static_cast<u64>(value) << 32U | value;
#pragma unroll 1
  for (u64 row = thread_y(); row < height; row += threads_y()) {
    u8* to = target + row * pitch;
    const u64 ahead = address_of(to) & 15U;
    const u64 end = ahead + width * element_bytes;
    to -= ahead;
    // As it lies in a word at a multiple of 4, where an element may begin anywhere.
    const u32 word = static_cast<u32>(twice >> (32U - 8U * static_cast<u32>(ahead & 3U)));
#pragma unroll 1
    for (u64 at = 16 * thread_x(); at < end; at += 16 * threads_x()) {
      if (at >= ahead && at + 16 <= end) {
        *reinterpret_cast<uint4*>(to + at) = make_uint4(word, word, word, word);
        continue;
      }
      const u64 first = at < ahead ? ahead : at;
      const u64 behind = at + 16 < end ? at + 16 : end;
#pragma unroll 1
      for (u64 i = first; i < behind; ++i)
        to[i] = static_cast<u8>(word >> (8U * static_cast<u32>(i & 3U)));
    }
  }
}
