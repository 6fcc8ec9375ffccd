// Tracking of cells by diffusion: one block a cell. A matrix of at most 41 x 81 words is copied to
// shared memory and relaxed there until the mean change is small enough; each step moves an element
// towards its eight neighbours and back towards the image gradient I.
#include "demarc_kernel.cuh"

constexpr int threads = 320;
constexpr int max_rows = 41;
constexpr int max_columns = 81;

DEMARC_KERNEL imgvf(float** matrices, float** images, const int* rows_of, const int* columns_of,
                    float weight, float rate, int max_steps, float cutoff) {
  __shared__ float current[max_rows * max_columns];
  __shared__ float changes[threads];
  __shared__ int done;
  const int cell = blockIdx.x;
  float* matrix = matrices[cell];
  const float* image = images[cell];
  const int rows = rows_of[cell];
  const int columns = columns_of[cell];
  const int elements = rows * columns;
  const int thread = threadIdx.x;

  const int passes = (elements + threads - 1) / threads;
  for (int pass = 0; pass < passes; ++pass) {
    const int at = pass * threads + thread;
    const int row = at / columns;
    if (row < rows) current[at] = matrix[at];
  }
  if (thread == 0) done = 0;
  __syncthreads();

  for (int step = 0; step < max_steps && done == 0; ++step) {
    float change = 0.0f;
    for (int pass = 0; pass < passes; ++pass) {
      const int at = pass * threads + thread;
      const int row = at / columns;
      const int column = at - row * columns;
      float updated = 0.0f;
      if (row < rows) {
        const int up = row == 0 ? 0 : columns;
        const int down = row == rows - 1 ? 0 : columns;
        const int left = column == 0 ? 0 : 1;
        const int right = column == columns - 1 ? 0 : 1;
        const float old = current[at];
        const float pull = (current[at - up - left] - old) + (current[at - up] - old) +
                           (current[at - up + right] - old) + (current[at - left] - old) +
                           (current[at + right] - old) + (current[at + down - left] - old) +
                           (current[at + down] - old) + (current[at + down + right] - old);
        const float gradient = image[at];
        updated = old + weight * pull - rate * gradient * (old - gradient);
        change += fabsf(updated - old);
      }
      // The pass's elements change together; those of later passes still see them old or new by
      // their position.
      __syncthreads();
      if (row < rows) current[at] = updated;
      __syncthreads();
    }
    changes[thread] = change;
    __syncthreads();
    for (int half = 256; half > 0; half /= 2) {
      if (thread < half && thread + half < threads) changes[thread] += changes[thread + half];
      __syncthreads();
    }
    if (thread == 0 && changes[0] < cutoff * elements) done = 1;
    __syncthreads();
  }

  for (int pass = 0; pass < passes; ++pass) {
    const int at = pass * threads + thread;
    const int row = at / columns;
    if (row < rows) matrix[at] = current[at];
  }
}
