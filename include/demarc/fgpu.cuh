// SM-affine kernels with the macros of Fractional GPUs (RTAS 2019, section 4), for nvcc. A kernel
// written with them runs on the SMs of its partition only, with no help from driver or hardware:
//
//   FGPU_DEFINE_KERNEL(add, const float* a, const float* b, float* c, int n) {
//     FGPU_BLOCK_INIT();
//     FGPU_FOR_EACH_BLOCK(block) {
//       const int i = block.x * blockDim.x + threadIdx.x;
//       if (i >= n) return;   // leaves this block's turn only
//       c[i] = a[i] + b[i];
//     };
//   }
//   fgpu_init(0, 2);                                  // partition 0 of 2 equal ones
//   FGPU_LAUNCH_KERNEL(add, blocks, threads, a, b, c, n);
//
// As many blocks as fit on the whole GPU are launched; those on foreign SMs leave, the others take
// block numbers from a counter, so the result is that of the original grid. `blocks` and `threads`
// are dim3. __syncthreads() is allowed where every thread of the block reaches it in the original
// kernel. Dynamic shared memory: FGPU_LAUNCH_KERNEL_SHARED(name, blocks, threads, bytes, stream,
// ...).
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

namespace demarc::fgpu {

constexpr int mask_words = 8;  // %smid up to 511

struct Partition {
  unsigned long long allowed[mask_words];
};

// One launch: the partition, the grid meant, and the counter its blocks draw numbers from.
struct Launch {
  Partition partition;
  dim3 blocks;
  unsigned* next;
};

#if defined(__CUDACC__)
__device__ inline bool here_allowed(const Partition& partition) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm < 64u * mask_words && ((partition.allowed[sm / 64] >> (sm % 64)) & 1ull) != 0;
}

// The next block of the grid for this thread block, the same in all its threads; false when none is
// left.
__device__ inline bool take_block(const Launch& launch, uint3& block) {
  __shared__ unsigned drawn;
  __syncthreads();  // the number before is no longer needed
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) drawn = atomicAdd(launch.next, 1u);
  __syncthreads();
  const unsigned number = drawn;
  const unsigned long long count = 1ull * launch.blocks.x * launch.blocks.y * launch.blocks.z;
  if (number >= count) return false;
  block.x = number % launch.blocks.x;
  block.y = number / launch.blocks.x % launch.blocks.y;
  block.z = number / launch.blocks.x / launch.blocks.y;
  return true;
}

// Calls a body once for each block of the grid this thread block draws.
struct Turns {
  const Launch& launch;
  template <class Body>
  __device__ void operator*(Body body) const {
    uint3 block;
    while (take_block(launch, block)) body(block);
  }
};
#endif

inline cudaError_t& last_error() {
  static cudaError_t error = cudaSuccess;
  return error;
}

inline Partition& current_partition() {
  static Partition partition{};
  return partition;
}

inline int& sm_total() {
  static int count = 0;
  return count;
}

// Launch counters, one per launch in flight; each is set to 0 in the launch's stream.
inline unsigned* counter(unsigned slot) {
  constexpr unsigned slots = 1024;
  static unsigned* memory = nullptr;
  if (memory == nullptr) last_error() = cudaMalloc(&memory, slots * sizeof(unsigned));
  return memory == nullptr ? nullptr : memory + slot % slots;
}

template <class Kernel, class... Arguments>
cudaError_t launch(Kernel kernel, dim3 blocks, dim3 threads, std::size_t shared,
                   cudaStream_t stream, Arguments... arguments) {
  static unsigned next_slot = 0;
  unsigned* const next = counter(next_slot++);
  if (next == nullptr || sm_total() == 0) return cudaErrorNotReady;  // fgpu_init() first
  int per_sm = 0;
  const int size = static_cast<int>(threads.x * threads.y * threads.z);
  cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, size, shared);
  if (error != cudaSuccess) return error;
  if (per_sm == 0) return cudaErrorInvalidConfiguration;
  error = cudaMemsetAsync(next, 0, sizeof(unsigned), stream);
  if (error != cudaSuccess) return error;
  const Launch control{current_partition(), blocks, next};
  kernel<<<dim3(static_cast<unsigned>(per_sm * sm_total())), threads, shared, stream>>>(
      control, arguments...);
  return cudaGetLastError();
}

}  // namespace demarc::fgpu

// Partition `index` of `parts` equal runs of TPCs (two SMs each) of the current device.
inline cudaError_t fgpu_init(int index, int parts) {
  using namespace demarc::fgpu;
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&sm_total(), cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  if (parts < 1 || index < 0 || index >= parts) return cudaErrorInvalidValue;
  Partition partition{};
  const int tpcs = (sm_total() + 1) / 2;
  for (int tpc = tpcs * index / parts; tpc < tpcs * (index + 1) / parts; ++tpc) {
    for (int sm = 2 * tpc; sm < 2 * tpc + 2 && sm < sm_total(); ++sm) {
      partition.allowed[sm / 64] |= 1ull << (sm % 64);
    }
  }
  current_partition() = partition;
  return cudaSuccess;
}

#define FGPU_DEFINE_KERNEL(name, ...) \
  __global__ void name(const demarc::fgpu::Launch fgpu_launch, __VA_ARGS__)
#define FGPU_BLOCK_INIT() \
  if (!demarc::fgpu::here_allowed(fgpu_launch.partition)) return
// The body becomes a function of its own, so that `return` in it ends one block's turn and not the
// kernel; a semicolon follows its closing brace.
#define FGPU_FOR_EACH_BLOCK(block_name) \
  demarc::fgpu::Turns{fgpu_launch}* [&](const uint3 block_name)
#define FGPU_GRID_DIM (fgpu_launch.blocks)
#define FGPU_LAUNCH_KERNEL(name, blocks, threads, ...) \
  demarc::fgpu::launch(name, dim3(blocks), dim3(threads), 0, nullptr, __VA_ARGS__)
#define FGPU_LAUNCH_KERNEL_SHARED(name, blocks, threads, bytes, stream, ...) \
  demarc::fgpu::launch(name, dim3(blocks), dim3(threads), bytes, stream, __VA_ARGS__)
