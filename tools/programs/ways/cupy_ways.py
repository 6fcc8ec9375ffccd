"""CuPy: a raw kernel, an elementwise kernel, a stream, a captured graph; an exact number of each."""
import json
import cupy, numpy
COUNT = 1 << 16
add = cupy.RawKernel(r'extern "C" __global__ void add(float* a) { a[blockIdx.x * blockDim.x + threadIdx.x] += 1; }', "add")
twice = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * 2", "twice")

def main():
    host = numpy.ones(COUNT, dtype=numpy.float32)
    x, y = cupy.empty(COUNT, cupy.float32), cupy.empty(COUNT, cupy.float32)
    x.set(host)
    for _ in range(100): add((COUNT // 256,), (256,), (x,))
    for _ in range(20): twice(x, y)                       # 20
    y += x                                                # 1: a ufunc
    cupy.cuda.Device().synchronize()
    ok = (y.get() == 303).all()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(30): add((COUNT // 256,), (256,), (x,))
        stream.synchronize()
        stream.begin_capture()
        for _ in range(10): add((COUNT // 256,), (256,), (x,))
        graph = stream.end_capture()
        for _ in range(7): graph.launch(stream)
        stream.synchronize()
    ok = ok and (x.get() == 1 + 100 + 30 + 70).all()
    print("right" if ok else "WRONG")
    print(json.dumps({"default stream": 121, "stream": 30, "graph": 70, "graphs": 7}))
if __name__ == "__main__": main()
