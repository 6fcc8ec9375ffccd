// What compilers make of the language: calls of every kind, switches, initialised data, inline PTX,
// textures, half precision, tensor cores, cooperative groups, launches from the device's side.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>
#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

struct Record {
  char tag;
  int number;
  float weight;
  const char* name;
  double pair[2];
};
__constant__ float taps[17] = {1, 2, 3.5f, -4};
__device__ Record records[2] = {{'a', -1, 2.5f, "first", {1e-300, 2}}, {'b', 7, 1, "second", {}}};
__device__ int (*chosen)(int);
__managed__ int shared_with_host = 3;
extern __shared__ float4 dynamic[];
__device__ __align__(64) unsigned char table[1000] = {1, 2, 3, 255};

struct Shape {
  virtual __device__ float area() const = 0;
};
struct Circle : Shape {
  float r;
  __device__ explicit Circle(float radius) : r(radius) {}
  __device__ float area() const override { return 3.14159f * r * r; }
};
struct Square : Shape {
  float a;
  __device__ explicit Square(float side) : a(side) {}
  __device__ float area() const override { return a * a; }
};

template <int n>
__device__ __noinline__ double deep(double x) {
  if constexpr (n == 0) {
    return x;
  } else {
    return deep<n - 1>(x) * sin(x);
  }
}
__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ Record changed(Record record, int by) {
  record.number += by;
  return record;
}

__global__ void calls(float* out, int which, Record by_value) {
  Shape* shape = which > 3 ? static_cast<Shape*>(new Circle(2)) : new Square(3);
  out[0] = shape->area();
  delete shape;
  out[1] = static_cast<float>(deep<3>(out[2]));
  out[3] = static_cast<float>(ackermann(2, which));
  out[4] = static_cast<float>(chosen(which));
  out[5] = changed(by_value, which).weight;
  if (threadIdx.x == 0) printf("%d %f %s\n", which, out[0], by_value.name);
}

__global__ void choices(int* data, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    switch (data[i]) {
      case 0:
        data[i] = 7;
        break;
      case 1:
        data[i] *= 3;
        break;
      case 2:
        data[i] += i;
        break;
      case 3:
        data[i] = __popc(i);
        break;
      case 4:
        data[i] = __clz(i);
        break;
      case 5:
        data[i] = __ffs(i) ^ n;
        break;
      case 6:
        data[i] = i % 7;
        break;
      case 7:
        data[i] = i / n;
        break;
      case 9:
        data[i] = __brev(i);
        break;
      default:
        data[i] -= records[i & 1].number;
    }
    if (data[i] == 12345) continue;
    if (data[i] == -5) break;
#pragma unroll 4
    for (int k = 0; k < 17; ++k) data[i] += static_cast<int>(taps[k] * table[k]);
  }
}

__global__ void __launch_bounds__(256, 2) halves(__half2* h, __nv_bfloat16* b, __nv_fp8_e4m3* q) {
  const int i = threadIdx.x;
  h[i] = __hfma2(h[i], h[i + 1], __float2half2_rn(0.5f));
  b[i] = __hadd(b[i], __float2bfloat16(static_cast<float>(q[i])));
  q[i] = __nv_fp8_e4m3(__half2float(__low2half(h[i])));
}

__global__ void tensor(const __half* a, const __half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.0f);
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 16);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, 16, mem_row_major);
}

__global__ void textures(cudaTextureObject_t t, cudaSurfaceObject_t s, float4* out) {
  out[0] = tex2D<float4>(t, 1.5f, 2.5f);
  out[1] = tex3D<float4>(t, 1.5f, 2.5f, threadIdx.x);
  out[2] = tex2DLod<float4>(t, 1.5f, 2.5f, 3.0f);
  out[3] = tex2Dgather<float4>(t, 1.5f, 2.5f, 2);
  float4 v;
  surf2Dread(&v, s, 16, 4);
  surf2Dwrite(v, s, 0, threadIdx.x, cudaBoundaryModeClamp);
}

__global__ void groups(int* data) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  int value = data[threadIdx.x];
  for (int i = tile.size() / 2; i > 0; i /= 2) value += tile.shfl_down(value, i);
  if (tile.any(value > 100)) value += __match_any_sync(~0u, value);
  auto active = cg::coalesced_threads();
  if (active.thread_rank() == 0) atomicMax(data, value);
  dynamic[threadIdx.x] = make_float4(value, clock64(), 0, 1);
  block.sync();
  data[threadIdx.x] = __dp4a(value, value, 3) + __vadd4(value, 5) + __byte_perm(value, 1, 0x3210);
}

__global__ void inlined(unsigned* p, unsigned n) {
  asm volatile(
      "{ .reg .pred p; .reg .b32 t;\n"
      "  setp.ge.u32 p, %1, 8;\n"
      "LOOP: @!p bra DONE;\n"
      "  ld.global.u32 t, [%0]; add.u32 t, t, %1; st.global.u32 [%0], t;\n"
      "  setp.lt.u32 p, t, 100; bra LOOP;\n"
      "DONE: }" ::"l"(p),
      "r"(n)
      : "memory");
  asm volatile("{ .reg .pred p;\nLOOP: setp.eq.u32 p, %0, 0;\n @p bra DONE;\n DONE: \n}" ::"r"(n));
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  p[lane] = __umulhi(lane, n) + __funnelshift_l(lane, n, 5) + __usad(lane, n, 1);
  assert(n < 1000);
}
