#!/usr/bin/env python3
"""CuPy: raw kernels, a raw module with a variable, an elementwise kernel, a reduction and copies; what they give as checksums.

CuPy compiles to machine code; with CUPY_COMPILE_WITH_PTX=1 it hands PTX to the driver, which a tenant needs."""
import cupy
import numpy

COUNT = 1 << 20
SOURCE = r"""
__device__ float scale[2] = {2.0f, 3.0f};
extern "C" __global__ void scaled(const float* from, float* to, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = scale[i & 1] * from[i];
}
extern "C" __global__ void summed(const float* from, float* sums) {
  __shared__ float parts[256];
  parts[threadIdx.x] = from[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int half = 128; half != 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}
"""


def same(name, found, expected):
    error = float(numpy.abs(found - expected).max())
    print(f"{name}: {'right' if error <= 1e-3 * float(numpy.abs(expected).max()) else 'WRONG'}")
    return found


def main():
    host = (numpy.arange(COUNT) % 1000).astype(numpy.float32)
    card = cupy.asarray(host)
    doubled = cupy.RawKernel(r'extern "C" __global__ void doubled(float* a) { a[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }', "doubled")
    copy = card.copy()
    doubled((COUNT // 256,), (256,), (copy,))
    same("raw kernel", cupy.asnumpy(copy), 2 * host)
    module = cupy.RawModule(code=SOURCE)
    scaled = cupy.empty_like(card)
    module.get_function("scaled")((COUNT // 256,), (256,), (card, scaled, numpy.int32(COUNT)))
    expected = host * numpy.where(numpy.arange(COUNT) % 2 == 0, 2, 3).astype(numpy.float32)
    same("raw module", cupy.asnumpy(scaled), expected)
    sums = cupy.empty(COUNT // 256, dtype=cupy.float32)
    module.get_function("summed")((COUNT // 256,), (256,), (scaled, sums))
    same("shared memory", cupy.asnumpy(sums), expected.reshape(-1, 256).sum(1))
    blended = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x * 0.25f + y * 0.75f", "blended")
    same("elementwise kernel", cupy.asnumpy(blended(card, scaled)), host * 0.25 + expected * 0.75)
    squares = cupy.ReductionKernel("float32 x", "float64 y", "(double)x * x", "a + b", "y = a", "0", "squares")
    same("reduction", cupy.asnumpy(squares(card))[None], numpy.array([(host.astype(numpy.float64) ** 2).sum()]))
    with cupy.cuda.Stream(non_blocking=True) as stream:
        later = cupy.asarray(host[::-1].copy())
        doubled((COUNT // 256,), (256,), (later,))
        stream.synchronize()
    same("a stream", cupy.asnumpy(later), 2 * host[::-1])


if __name__ == "__main__":
    main()
