// A kernel to try Demarc with (docs/my-kernel.md): each word becomes the mean of itself and its two
// neighbours. Blocks share the words at their borders.
//   nvcc -ptx -o smooth.ptx smooth.cu
extern "C" __global__ void smooth(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float left = in[i == 0 ? i : i - 1];
  const float right = in[i == n - 1 ? i : i + 1];
  out[i] = (left + in[i] + right) * (1.0f / 3.0f);
}
