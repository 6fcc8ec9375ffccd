// For clang's NVPTX back end, in plain C: no CUDA headers.
typedef __attribute__((address_space(1))) float global_float;
typedef __attribute__((address_space(3))) float shared_float;
struct Pair {
  int first;
  double second;
};
static const int weights[5] = {3, -1, 4, 1, -5};
static shared_float tile[128];
volatile int counter = 41;
struct Pair pairs[2] = {{1, 2.5}, {-3, 1e300}};
int (*operations[2])(int, int);

__attribute__((noinline)) static int mix(int a, int b) {
  int sum = 0;
  for (int i = 0; i < a; ++i) sum += weights[(b + i) % 5] * (sum ^ b);
  return sum;
}
__attribute__((noinline)) struct Pair twice(struct Pair p) {
  p.first *= 2;
  p.second += p.first;
  return p;
}
long long factorial(int n) {
  return n < 2 ? 1 : n * factorial(n - 1);
}

float work(global_float* in, global_float* out, int n) {
  const int thread = __nvvm_read_ptx_sreg_tid_x() +
                     __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
  tile[thread & 127] = in[thread];
  __syncthreads();
  float sum = tile[(thread + 1) & 127];
  switch (n) {
    case 1: sum += mix(n, thread); break;
    case 2: sum *= (float)twice(pairs[thread & 1]).second; break;
    case 3: sum -= (float)factorial(thread); break;
    case 4: sum = operations[thread & 1](thread, n); break;
    case 7: sum = -sum; break;
    case 8: sum = 1.0f / sum; break;
    default: sum += counter;
  }
  double big = sum;
  unsigned char bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = (unsigned char)(thread >> i);
  for (int i = 0; i < n; ++i) big += bytes[i & 15] * 0.1;
  out[thread] = (float)big;
  return sum;
}
