"""Numba: 100 launches into the default stream, 30 into a stream, 4 threads with 10 each into streams of their own."""
import json, threading
import numpy
if not hasattr(numpy, "row_stack"): numpy.row_stack = numpy.vstack
from numba import cuda

@cuda.jit
def add(to):
    i = cuda.grid(1)
    if i < to.size: to[i] += 1

def main():
    x = cuda.to_device(numpy.zeros(1 << 16, dtype=numpy.float32))
    for _ in range(100): add[256, 256](x)
    stream = cuda.stream()
    cuda.synchronize()
    for _ in range(30): add[256, 256, stream](x)
    stream.synchronize()
    cells = [cuda.to_device(numpy.zeros(1 << 16, dtype=numpy.float32)) for _ in range(4)]
    def work(cell):
        own = cuda.stream()
        for _ in range(10): add[256, 256, own](cell)
        own.synchronize()
    threads = [threading.Thread(target=work, args=(cell,)) for cell in cells]
    for t in threads: t.start()
    for t in threads: t.join()
    cuda.synchronize()
    right = (x.copy_to_host() == 130).all() and all((c.copy_to_host() == 10).all() for c in cells)
    print("right" if right else "WRONG")
    print(json.dumps({"default stream": 100, "stream": 70, "graph": 0, "graphs": 0}))
if __name__ == "__main__": main()
