#!/usr/bin/env python3
"""Numba: a kernel, shared memory, local memory, an atomic and a stream; what they give as words.

Numba links what it compiles; the driver sees PTX only where its own linker does that."""
import numpy

if not hasattr(numpy, "row_stack"):  # some Numbas ask for it, and NumPy has it no more
    numpy.row_stack = numpy.vstack
from numba import cuda, float32  # noqa: E402

COUNT = 1 << 18


@cuda.jit
def added(a, b, to):
    i = cuda.grid(1)
    if i < to.size:
        to[i] = a[i] + b[i]


@cuda.jit
def summed(values, sums):
    parts = cuda.shared.array(256, float32)
    parts[cuda.threadIdx.x] = values[cuda.grid(1)]
    cuda.syncthreads()
    half = 128
    while half != 0:
        if cuda.threadIdx.x < half:
            parts[cuda.threadIdx.x] += parts[cuda.threadIdx.x + half]
        cuda.syncthreads()
        half //= 2
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(sums, 0, parts[0])


@cuda.jit
def shuffled(values, to):
    own = cuda.local.array(16, float32)
    i = cuda.grid(1)
    for k in range(16):
        own[k] = values[(i + k) % values.size]
    to[i] = own[int(values[i]) % 16]


def same(name, found, expected):
    error = float(numpy.abs(found - expected).max())
    print(f"{name}: {'right' if error <= 1e-3 * float(numpy.abs(expected).max()) else 'WRONG'}")


def main():
    host = (numpy.arange(COUNT) % 1000).astype(numpy.float32)
    card = cuda.to_device(host)
    result = cuda.device_array_like(host)
    added[COUNT // 256, 256](card, card, result)
    same("kernel", result.copy_to_host(), 2 * host)
    sums = cuda.to_device(numpy.zeros(1, dtype=numpy.float32))
    summed[COUNT // 256, 256](card, sums)
    same("shared memory and an atomic", sums.copy_to_host(), numpy.array([host.astype(numpy.float64).sum()]))
    shuffled[COUNT // 256, 256](card, result)
    index = (numpy.arange(COUNT) + host.astype(int) % 16) % COUNT
    same("local memory", result.copy_to_host(), host[index])
    stream = cuda.stream()
    later = cuda.to_device(host, stream=stream)
    added[COUNT // 256, 256, stream](later, card, result)
    found = result.copy_to_host(stream=stream)
    stream.synchronize()
    same("a stream", found, 2 * host)


if __name__ == "__main__":
    main()
