// libcu++: atomics of every scope, barriers, semaphores, pipelines, numbers, PTX wrappers.
#include <cooperative_groups.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/complex>
#include <cuda/std/tuple>
#include <cuda/std/variant>

__global__ void atomics(cuda::atomic<int, cuda::thread_scope_device>* a,
                        cuda::atomic<unsigned long long, cuda::thread_scope_system>* b,
                        cuda::atomic<float, cuda::thread_scope_block>* c, short* d) {
  a->fetch_add(3, cuda::std::memory_order_relaxed);
  int expected = 5;
  a->compare_exchange_weak(expected, 7, cuda::std::memory_order_acq_rel);
  b->store(b->load(cuda::std::memory_order_acquire) + 1, cuda::std::memory_order_release);
  c->fetch_add(1.5f);
  cuda::atomic_ref<short, cuda::thread_scope_device>(*d).exchange(9);
  cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, cuda::thread_scope_device);
  b->wait(0);
  b->notify_all();
}

__global__ void staged(const int4* in, int4* out, int count) {
  constexpr int stages = 2;
  __shared__ int4 buffer[stages][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto group = cooperative_groups::this_thread_block();
  auto pipeline = cuda::make_pipeline(group, &state);
  for (int i = 0; i < count; ++i) {
    pipeline.producer_acquire();
    cuda::memcpy_async(group, buffer[i % stages], in + i * 128,
                       cuda::aligned_size_t<16>(sizeof(int4) * 128), pipeline);
    pipeline.producer_commit();
    pipeline.consumer_wait();
    out[i * 128 + threadIdx.x] = buffer[i % stages][127 - threadIdx.x];
    pipeline.consumer_release();
  }
}

__global__ void meeting(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  auto token = barrier.arrive();
  out[threadIdx.x] += 1;
  barrier.wait(cuda::std::move(token));
}

__global__ void numbers(cuda::std::complex<double>* z, cuda::std::variant<int, float>* v) {
  z[threadIdx.x] = cuda::std::exp(z[threadIdx.x]) * cuda::std::sqrt(z[threadIdx.x]);
  if (cuda::std::holds_alternative<int>(*v)) *v = 2.5f;
}
