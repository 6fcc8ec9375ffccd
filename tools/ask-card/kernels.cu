// Kernels of ask.sh: a small one, one whose blocks wait for each other, and two whose stacks ptxas
// cannot tell.
extern "C" __global__ void tiny(int* out) {
  out[threadIdx.x] = 1;
}

extern "C" __global__ void grid_wait(int* out, int blocks) {
  if (threadIdx.x == 0) {
    atomicAdd(out, 1);
    while (*static_cast<volatile int*>(out) < blocks) {
    }
  }
  __syncthreads();
  out[1] = 2;
}

__device__ __noinline__ int fib(int n, const volatile int* zero) {
  if (n < 2) return n;
  const int a = fib(n - 1, zero);
  const int b = fib(n - 2, zero);
  return a + b + *zero;
}
extern "C" __global__ void recursive(int* out, int n) {
  out[threadIdx.x] = fib(n, out);
}

struct Shape {
  __device__ virtual int area(int x) = 0;
};
extern "C" __global__ void virtual_call(int* out, Shape** shapes) {
  out[threadIdx.x] = shapes[threadIdx.x]->area(3);
}
