"""Reads and writes 1 GiB of device memory again and again, for so many seconds."""
import sys
import time

import cupy

words = cupy.ones(1 << 28, dtype=cupy.float32)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(100):
        words += 1
    cupy.cuda.Device().synchronize()
