// Times llama.cpp's products of a q4_K matrix with 1, 2 and 4 vectors (mul_mat_vec_q), one kernel
// at a time, out of its PTX:
//
//   demarc ptx --extract FOLDER libggml-cuda.so
//   g++ -O2 -std=c++20 -I/usr/local/cuda/include mul_mat_vec.cpp -o mul_mat_vec -lcuda
//   ./mul_mat_vec "$(grep -l mul_mat_vec_qIL9ggml_type12ELi1E FOLDER/*.ptx)" [MOST REGISTERS]
//   demarc exec --part 1/2 --memory 4GiB -- ./mul_mat_vec …
//
// 16 matrices are read in turn, so that none is in the L2. Prints the median of 12 times 16
// launches.
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr unsigned rows = 8192, columns = 2048, matrices = 16, repeats = 12;
constexpr unsigned block_columns = 256, block_bytes = 144;  // q4_K
constexpr unsigned vector_columns = 32, vector_bytes = 36;  // q8_1
constexpr std::size_t matrix_bytes = std::size_t{rows} * (columns / block_columns) * block_bytes;
constexpr std::size_t output_bytes = std::size_t{4} * rows * sizeof(float);

void need(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* why = "unknown error";
  cuGetErrorString(result, &why);
  std::fprintf(stderr, "mul_mat_vec: %s: %s\n", what, why);
  std::exit(2);
}

// The kernel alone, so that the driver compiles no other one.
std::string kernel_text(const std::string& module, unsigned vectors, const char* registers) {
  const std::string entry =
      ".entry _Z13mul_mat_vec_qIL9ggml_type12ELi" + std::to_string(vectors) + "ELb0ELb0ELb0E";
  const std::size_t begin = module.find(entry), end = module.find("\n}\n", begin);
  if (begin == std::string::npos || end == std::string::npos) {
    std::fprintf(stderr, "mul_mat_vec: the PTX has no kernel %s\n", entry.c_str());
    std::exit(1);
  }
  std::string text = module.substr(begin, end - begin) + "\n}\n";
  if (const std::size_t at = text.find(".minnctapersm 1"); registers != nullptr) {
    text.replace(at, 15, std::string(".maxnreg ") + registers);
  }
  return ".version 9.0\n.target sm_90\n.address_size 64\n.visible " + text;
}

void time_kernel(const std::string& text, unsigned vectors, CUdeviceptr weights, CUdeviceptr input,
                 CUdeviceptr output) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  const std::size_t name = text.find("_Z13");
  need(cuModuleLoadData(&module, text.c_str()), "loading the kernel");
  need(cuModuleGetFunction(&kernel, module, text.substr(name, text.find('(') - name).c_str()),
       "kernel");
  int registers = 0;
  need(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel), "registers");
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  need(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
  need(cuEventCreate(&begin, 0), "event");
  need(cuEventCreate(&end, 0), "event");
  unsigned char fused[48] = {};
  unsigned divisor[3] = {0, 0, 1}, width = columns, row = columns / block_columns;
  unsigned vector = columns / vector_columns, result = rows, none = 0;
  CUdeviceptr ids = 0;
  std::vector<float> times;
  for (unsigned repeat = 0; repeat < repeats; ++repeat) {
    need(cuEventRecord(begin, stream), "event");
    for (unsigned i = 0; i < matrices; ++i) {
      CUdeviceptr matrix = weights + i * matrix_bytes;
      void* arguments[] = {&matrix, &input,  &ids,    fused,   &output, &width, divisor,
                           &row,    &vector, &result, divisor, &none,   &none,  &none,
                           divisor, &none,   &none,   &none,   &none};
      need(cuLaunchKernel(kernel, vectors == 1 ? rows : rows / 2, 1, 1, 32, 4, 1, 0, stream,
                          arguments, nullptr),
           "launch");
    }
    need(cuEventRecord(end, stream), "event");
    need(cuEventSynchronize(end), "the kernels");
    float milliseconds = 0;
    need(cuEventElapsedTime(&milliseconds, begin, end), "time");
    times.push_back(1000 * milliseconds / matrices);
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  std::printf("%u vectors: %d registers, %.2f us\n", vectors, registers, times[repeats / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "");
  std::stringstream module;
  if (!(module << file.rdbuf())) {
    std::fprintf(stderr, "usage: mul_mat_vec PTX [MOST REGISTERS]\n");
    return 1;
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  need(cuInit(0), "the driver");
  need(cuDeviceGet(&device, 0), "the card");
  need(cuDevicePrimaryCtxRetain(&context, device), "a context");
  need(cuCtxSetCurrent(context), "a context");
  CUdeviceptr weights = 0, input = 0, output = 0;
  const std::size_t input_bytes = std::size_t{4} * columns / vector_columns * vector_bytes;
  need(cuMemAlloc(&weights, matrices * matrix_bytes), "memory");
  need(cuMemAlloc(&input, input_bytes), "memory");
  need(cuMemAlloc(&output, output_bytes), "memory");
  need(cuMemsetD8(weights, 0x11, matrices * matrix_bytes), "memory");
  need(cuMemsetD8(input, 0x21, input_bytes), "memory");
  for (const unsigned vectors : {1U, 2U, 4U}) {
    time_kernel(kernel_text(module.str(), vectors, argc > 2 ? argv[2] : nullptr), vectors, weights,
                input, output);
  }
}
