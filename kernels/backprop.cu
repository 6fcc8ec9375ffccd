// One layer of a neural network: the forward pass, a partial sum per block, and the update of its
// weights. Units are numbered from 1; index 0 is the bias. Weights lie row by row, hidden + 1 a
// row.
#include "demarc_kernel.cuh"

constexpr int side = 16;  // a block is side x side threads

DEMARC_KERNEL layer_forward(const float* input, float* weights, float* partial_sums, int hidden) {
  __shared__ float node[side];
  __shared__ float products[side][side];
  const int by = blockIdx.y;
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int index = (hidden + 1) * side * by + (hidden + 1) * ty + tx + hidden + 2;

  if (tx == 0) node[ty] = input[side * by + ty + 1];
  __syncthreads();
  products[ty][tx] = weights[index];
  __syncthreads();
  products[ty][tx] = products[ty][tx] * node[ty];
  __syncthreads();
  for (int stride = 1; stride < side; stride *= 2) {
    if (ty % (2 * stride) == 0) products[ty][tx] += products[ty + stride][tx];
    __syncthreads();
  }
  weights[index] = products[ty][tx];
  __syncthreads();
  if (tx == 0) partial_sums[by * hidden + ty] = products[tx][ty];
}

DEMARC_KERNEL adjust_weights(const float* delta, int hidden, const float* layer, int inputs,
                             float* weights, float* old_weights) {
  constexpr double momentum = 0.3;
  constexpr double rate = 0.3;
  const int by = blockIdx.y;
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int index = (hidden + 1) * side * by + (hidden + 1) * ty + tx + hidden + 2;
  const int unit = tx + 1;
  const int input = side * by + ty + 1;

  weights[index] += rate * delta[unit] * layer[input] + momentum * old_weights[index];
  // Computed again on purpose: the store may have changed what the pointers see.
  old_weights[index] = rate * delta[unit] * layer[input] + momentum * old_weights[index];
  __syncthreads();
  if (ty == 0 && by == 0) {
    weights[unit] += rate * delta[unit] + momentum * old_weights[unit];
    old_weights[unit] = rate * delta[unit] + momentum * old_weights[unit];
  }
}
