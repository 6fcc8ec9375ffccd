// What becomes of the sums of a product: scaling, what was in C, bias, activation, and the stores.
#pragma once

#include "access.cuh"

namespace demarc::blas {

struct Scales {
  float alpha;
  float beta;
};

static __device__ __forceinline__ Scales scales_of(const ProductArguments& p) {
  return {p.alpha_at == 0 ? static_cast<float>(p.alpha) : load_number(p.alpha_at, p.scale),
          p.beta_at == 0 ? static_cast<float>(p.beta) : load_number(p.beta_at, p.scale)};
}

// tanh as 1 - 2 / (1 + exp(2 x)), which neither overflows nor gives NaN.
static __device__ __forceinline__ float activated(float v, int activation) {
  if (activation == relu) return v > 0.0f || v != v ? v : 0.0f;
  if (activation == gelu) {
    const float inner = 0.7978845608f * (v + 0.044715f * v * v * v);
    float power;
    float part;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(inner * 2.885390082f));
    asm("rcp.approx.f32 %0, %1;" : "=f"(part) : "f"(1.0f + power));
    return v * (1.0f - part);
  }
  return v;
}

// One element, at any alignment.
static __device__ __forceinline__ void finish(const ProductArguments& p, const Scales& scales,
                                              u64 c, u64 d, u32 row, u32 column, float sum) {
  const bool turned = p.transposed_out != 0;
  const u64 line = turned ? column : row;
  const u64 place = turned ? row : column;
  float v = scales.alpha * sum;
  const u32 bytes = bytes_of(p.out);
  if (scales.beta != 0.0f) {
    v += scales.beta * load_number(c + (line * p.c.pitch + place) * bytes, p.out);
  }
  if (p.bias_at != 0) {
    const u64 of_bias = turned ? row : column;
    v += load_number(p.bias_at + of_bias * bytes_of(p.bias), p.bias);
  }
  store_number(d + (line * p.d.pitch + place) * bytes, p.out, activated(v, p.activation));
}

// Whether rows of C and D can be accessed 16 bytes at a time.
static __device__ __forceinline__ bool is_wide(const ProductArguments& p, u64 c, u64 d) {
  const u64 bytes = bytes_of(p.out);
  return p.transposed_out == 0 && ((c | d | p.c.pitch * bytes | p.d.pitch * bytes) & 15U) == 0;
}

// Eight neighbours of a row, or four floats, where is_wide().
static __device__ __forceinline__ void finish_wide(const ProductArguments& p, const Scales& scales,
                                                   u64 c, u64 d, u32 row, u32 column, float (&v)[8],
                                                   u32 count) {
#pragma unroll
  for (u32 i = 0; i < 8; ++i) v[i] *= scales.alpha;
  const u32 bytes = bytes_of(p.out);
  if (scales.beta != 0.0f) {
    const u64 at = c + (u64{row} * p.c.pitch + column) * bytes;
    const uint4 old = load16(at);
    const u32 words[4] = {old.x, old.y, old.z, old.w};
    if (p.out == f32) {
      const uint4 more = count > 4 ? load16(at + 16) : make_uint4(0, 0, 0, 0);
      const u32 others[4] = {more.x, more.y, more.z, more.w};
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        v[i] += scales.beta * bits_to_float(words[i]);
        v[i + 4] += scales.beta * bits_to_float(others[i]);
      }
    } else {
#pragma unroll
      for (u32 i = 0; i < 8; ++i) {
        const u16 half = static_cast<u16>(words[i / 2] >> (16U * (i % 2)));
        v[i] += scales.beta * (p.out == f16 ? from_f16(half) : from_bf16(half));
      }
    }
  }
  if (p.bias_at != 0) {
#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
      if (i < count) v[i] += load_number(p.bias_at + (column + i) * bytes_of(p.bias), p.bias);
    }
  }
  if (p.activation != no_activation) {
#pragma unroll
    for (u32 i = 0; i < 8; ++i) v[i] = activated(v[i], p.activation);
  }
  const u64 at = d + (u64{row} * p.d.pitch + column) * bytes;
  if (p.out == f32) {
    store16(at, make_uint4(float_to_bits(v[0]), float_to_bits(v[1]), float_to_bits(v[2]),
                           float_to_bits(v[3])));
    if (count > 4) {
      store16(at + 16, make_uint4(float_to_bits(v[4]), float_to_bits(v[5]), float_to_bits(v[6]),
                                  float_to_bits(v[7])));
    }
    return;
  }
  u32 words[4];
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const u32 low = p.out == f16 ? to_f16(v[2 * i]) : to_bf16(v[2 * i]);
    const u32 high = p.out == f16 ? to_f16(v[2 * i + 1]) : to_bf16(v[2 * i + 1]);
    words[i] = low | high << 16U;
  }
  store16(at, make_uint4(words[0], words[1], words[2], words[3]));
}

}  // namespace demarc::blas
