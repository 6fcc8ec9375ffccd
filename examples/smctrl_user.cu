// A program written for libsmctrl's interface, which Demarc's libsmctrl.so serves: a set bit of a
// mask DISABLES a TPC. Prints which SMs kernels used under each kind of mask.
// Build: nvcc -std=c++17 -o smctrl_user examples/smctrl_user.cu -L build/release -lsmctrl
// Run:   LD_LIBRARY_PATH=build/release ./smctrl_user
#include <cstdint>
#include <cstdio>
#include <set>
#include <vector>

extern "C" {
void libsmctrl_set_global_mask(uint64_t mask);
void libsmctrl_set_stream_mask(void* stream, uint64_t mask);
void libsmctrl_set_stream_mask_ext(void* stream, unsigned __int128 mask);
void libsmctrl_set_next_mask(uint64_t mask);
int libsmctrl_get_gpc_info(uint32_t* num_enabled_gpcs, uint64_t** tpcs_for_gpc, int dev);
int libsmctrl_get_tpc_info_cuda(uint32_t* num_tpcs, int cuda_dev);
}

__global__ void record(unsigned* sm_of_block) {
  if (threadIdx.x == 0) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    sm_of_block[blockIdx.x] = sm;
  }
  const long long begin = clock64();
  while (clock64() - begin < 3000) {
  }
}

constexpr int blocks = 1024;

// TPCs (two SMs each) that a kernel in the stream uses.
std::set<unsigned> used_tpcs(cudaStream_t stream, unsigned* memory) {
  record<<<blocks, 64, 0, stream>>>(memory);
  cudaStreamSynchronize(stream);
  std::vector<unsigned> host(blocks);
  cudaMemcpy(host.data(), memory, blocks * sizeof(unsigned), cudaMemcpyDeviceToHost);
  std::set<unsigned> tpcs;
  for (const unsigned sm : host) tpcs.insert(sm / 2);
  return tpcs;
}

int wrong = 0;

void expect(const char* what, const std::set<unsigned>& used, const std::set<unsigned>& wanted) {
  const bool good = used == wanted;
  std::printf("%-44s %3zu TPCs: %s\n", what, used.size(), good ? "as asked" : "WRONG");
  wrong += good ? 0 : 1;
}

int main() {
  uint32_t tpcs = 0;
  uint32_t gpcs = 0;
  uint64_t* of_gpc = nullptr;
  if (libsmctrl_get_tpc_info_cuda(&tpcs, 0) != 0 ||
      libsmctrl_get_gpc_info(&gpcs, &of_gpc, 0) != 0) {
    return 1;
  }
  std::printf("%u TPCs in %u GPCs\n", tpcs, gpcs);
  unsigned* memory = nullptr;
  if (cudaMalloc(&memory, blocks * sizeof(unsigned)) != cudaSuccess) return 2;
  cudaStream_t first, second;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);

  std::set<unsigned> gpc;
  for (unsigned t = 0; t < 64; ++t) {
    if ((of_gpc[1] >> t & 1) != 0) gpc.insert(t);
  }
  libsmctrl_set_stream_mask(first, ~of_gpc[1]);
  expect("stream mask, one GPC", used_tpcs(first, memory), gpc);
  libsmctrl_set_global_mask(~0x30ull);
  expect("global mask, TPCs 4 and 5", used_tpcs(second, memory), {4, 5});
  expect("the stream mask overrides the global one", used_tpcs(first, memory), gpc);
  libsmctrl_set_next_mask(~0x100ull);
  expect("the next mask overrides both", used_tpcs(first, memory), {8});
  expect("and holds for one launch", used_tpcs(first, memory), gpc);
  libsmctrl_set_next_mask(~0x3ull);
  expect("the default stream", used_tpcs(nullptr, memory), {0, 1});
  if (tpcs > 64) {
    libsmctrl_set_stream_mask_ext(second, ~(static_cast<unsigned __int128>(3) << 64));
    expect("128-bit mask, TPCs 64 and 65", used_tpcs(second, memory), {64, 65});
  }
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  return wrong == 0 ? 0 : 3;
}
