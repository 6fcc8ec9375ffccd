"""cuBLAS through ctypes, without PyTorch's allocator: scal and axpy (one kernel each), gemm, gemv, in a stream."""
import ctypes, glob, sys, sysconfig

def load(name):
    for place in [f"{p}/nvidia/*/lib/{name}.so*" for p in sys.path + [sysconfig.get_paths()["purelib"]]] + [f"/usr/local/cuda/lib64/{name}.so*"]:
        for path in sorted(glob.glob(place)):
            try: return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            except OSError: pass
    raise SystemExit(f"no {name}")

def main():
    rt = load("libcudart"); load("libcublasLt"); blas = load("libcublas")
    n = 512
    P = ctypes.c_void_p
    def memory():
        p = P(); assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4 * n * n)) == 0
        ones = (ctypes.c_float * (n * n))(*([1.0] * (n * n)))
        assert rt.cudaMemcpy(p, ones, ctypes.c_size_t(4 * n * n), 1) == 0
        return p
    a, b, c = memory(), memory(), memory()
    handle, stream = P(), P()
    assert blas.cublasCreate_v2(ctypes.byref(handle)) == 0 and rt.cudaStreamCreate(ctypes.byref(stream)) == 0
    assert blas.cublasSetStream_v2(handle, stream) == 0
    one, zero, two = (ctypes.c_float(v) for v in (1, 0, 2))
    ref = ctypes.byref
    for _ in range(10): assert blas.cublasSscal_v2(handle, n * n, ref(one), a, 1) == 0
    for _ in range(10): assert blas.cublasSaxpy_v2(handle, n * n, ref(two), a, 1, c, 1) == 0
    for _ in range(10): assert blas.cublasSgemm_v2(handle, 0, 0, n, n, n, ref(one), a, n, b, n, ref(zero), c, n) == 0
    for _ in range(10): assert blas.cublasSgemv_v2(handle, 0, n, n, ref(one), a, n, b, 1, ref(zero), c, 1) == 0
    assert rt.cudaDeviceSynchronize() == 0
    host = (ctypes.c_float * 1)(); assert rt.cudaMemcpy(host, c, ctypes.c_size_t(4), 2) == 0
    print("right" if host[0] == n else f"WRONG: {host[0]}")
if __name__ == "__main__": main()
