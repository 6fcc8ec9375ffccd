"""Prints how long allocations of device memory take: 64 MiB, 1 GiB and 4 GiB, one after the other."""
import time

import cupy

cupy.cuda.runtime.malloc(1 << 20)  # the context, and what a process maps once
for mebibytes in (64, 1024, 4096):
    start = time.perf_counter()
    cupy.cuda.runtime.malloc(mebibytes << 20)
    print(f"{mebibytes} MiB {time.perf_counter() - start:.3f} s", flush=True)
