// Launches kernels in the ways that programs do, a known number of each: "ways SECTION..."
// (default: all but `memory`). The last line is JSON: launches by the path that `demarc exec
// --audit` names. nvcc -arch=sm_90 -O2 -o ways ways.cu -lcuda
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#define OK(call)                                                          \
  do {                                                                    \
    const int e_ = static_cast<int>(call);                                \
    if (e_ != 0) {                                                        \
      std::printf("%s:%d: %s: error %d\n", section, __LINE__, #call, e_); \
      failed = true;                                                      \
      return;                                                             \
    }                                                                     \
  } while (0)

const char* section = "";
bool failed = false;
unsigned* cell = nullptr;  // counts the blocks that ran
long on_default, on_stream, of_graphs, graphs, all_blocks;
constexpr int blocks = 24, threads = 64;

__global__ void add(unsigned* to) {
  if (threadIdx.x == 0) atomicAdd(to, 1u);
}
__global__ void other(unsigned* to, int by) {
  if (threadIdx.x == 0) atomicAdd(to, unsigned(by));
}
__global__ void late(unsigned* to) {
  if (threadIdx.x == 0) atomicAdd(to, 1u);
}
__global__ void never_first_loaded(unsigned* to) {
  if (threadIdx.x == 0) atomicAdd(to, 1u);
}
__global__ void spin(unsigned* to, long long clocks) {
  const long long begin = clock64();
  while (clock64() - begin < clocks) {
  }
  if (threadIdx.x == 0) atomicAdd(to, 1u);
}
__global__ void together(unsigned* to) {
  cooperative_groups::this_grid();
  if (threadIdx.x == 0) atomicAdd(to, 1u);
}
__global__ void __cluster_dims__(2, 1, 1) clustered(unsigned* to) {
  if (threadIdx.x == 0) atomicAdd(to, 1u);
}

void count(long& path, long launches, long grid = blocks) {
  path += launches;
  all_blocks += launches * grid;
}
struct Stream {
  cudaStream_t s = nullptr;
  explicit Stream(unsigned flags = cudaStreamNonBlocking) { cudaStreamCreateWithFlags(&s, flags); }
  ~Stream() { cudaStreamDestroy(s); }
  operator cudaStream_t() const { return s; }
};
void by_default() {
  for (int i = 0; i < 100; ++i) add<<<blocks, threads>>>(cell);
  OK(cudaDeviceSynchronize());
  count(on_default, 100);
}
void by_streams() {
  Stream plain(cudaStreamDefault), free;
  for (int i = 0; i < 25; ++i) {
    add<<<blocks, threads, 0, plain>>>(cell);
    add<<<blocks, threads, 0, free>>>(cell);
  }
  OK(cudaDeviceSynchronize());
  count(on_stream, 50);
  for (int i = 0; i < 50; ++i) {
    Stream one;
    add<<<blocks, threads, 0, one>>>(cell);
  }
  OK(cudaDeviceSynchronize());
  count(on_stream, 50);
}
void by_threads() {
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([] {
      Stream own;
      for (int i = 0; i < 25; ++i) add<<<blocks, threads, 0, own>>>(cell);
      cudaStreamSynchronize(own);
    });
  for (auto& one : all) one.join();
  OK(cudaDeviceSynchronize());
  count(on_stream, 100);
}
void by_per_thread() {
  for (int i = 0; i < 20; ++i) add<<<blocks, threads, 0, cudaStreamPerThread>>>(cell);
  for (int i = 0; i < 5; ++i) add<<<blocks, threads, 0, cudaStreamLegacy>>>(cell);
  OK(cudaDeviceSynchronize());
  count(on_default, 25);
}
void by_attributes() {
  Stream s;
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = s;
  config.attrs = attribute;
  config.numAttrs = 1;
  for (int i = 0; i < 20; ++i) OK(cudaLaunchKernelEx(&config, add, cell));
  attribute[0].id = cudaLaunchAttributePriority;
  attribute[0].val.priority = -1;
  for (int i = 0; i < 5; ++i) OK(cudaLaunchKernelEx(&config, add, cell));
  OK(cudaDeviceSynchronize());
  count(on_stream, 25);
}
void by_clusters() {
  Stream s;
  for (int i = 0; i < 10; ++i) clustered<<<blocks, threads, 0, s>>>(cell);
  OK(cudaDeviceSynchronize());
  count(on_stream, 10);
}
void cooperatively() {
  Stream s;
  void* arguments[] = {&cell};
  for (int i = 0; i < 5; ++i)
    OK(cudaLaunchCooperativeKernel(together, dim3(8), dim3(threads), arguments, 0, s));
  OK(cudaDeviceSynchronize());
  count(on_stream, 5, 8);
}
void behind_a_long_kernel() {
  Stream s;
  spin<<<1, 1, 0, s>>>(cell, 1000000000LL);
  count(on_stream, 1, 1);
  for (int i = 0; i < 3000; ++i) add<<<blocks, threads, 0, s>>>(cell);
  OK(cudaDeviceSynchronize());
  count(on_stream, 3000);
}
void by_failing() {
  add<<<blocks, 4096>>>(cell);
  if (cudaGetLastError() == cudaSuccess) {
    std::printf("a block of 4096 threads was launched\n");
    failed = true;
  }
  add<<<0, threads>>>(cell);
  cudaGetLastError();
  add<<<blocks, threads>>>(cell);
  OK(cudaDeviceSynchronize());
  count(on_default, 1);
}
void replay(cudaGraph_t graph, int times, long kernels) {
  Stream s;
  cudaGraphExec_t made = nullptr;
  OK(cudaGraphInstantiate(&made, graph, 0));
  for (int i = 0; i < times; ++i) OK(cudaGraphLaunch(made, s));
  OK(cudaDeviceSynchronize());
  count(of_graphs, times * kernels);
  graphs += times;
  OK(cudaGraphExecDestroy(made));
  OK(cudaGraphDestroy(graph));
}
void by_capture() {
  Stream s;
  cudaGraph_t graph = nullptr;
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 10; ++i) add<<<blocks, threads, 0, s>>>(cell);
  OK(cudaStreamEndCapture(s, &graph));
  replay(graph, 7, 10);
}
void by_branches() {
  Stream a, b, c;
  cudaEvent_t fork, from_b, from_c;
  cudaGraph_t graph = nullptr;
  OK(cudaEventCreate(&fork));
  OK(cudaEventCreate(&from_b));
  OK(cudaEventCreate(&from_c));
  OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
  OK(cudaEventRecord(fork, a));
  OK(cudaStreamWaitEvent(b, fork, 0));
  OK(cudaStreamWaitEvent(c, fork, 0));
  for (int i = 0; i < 3; ++i) {
    add<<<blocks, threads, 0, a>>>(cell);
    add<<<blocks, threads, 0, b>>>(cell);
    late<<<blocks, threads, 0, c>>>(cell);
  }
  OK(cudaEventRecord(from_b, b));
  OK(cudaEventRecord(from_c, c));
  OK(cudaStreamWaitEvent(a, from_b, 0));
  OK(cudaStreamWaitEvent(a, from_c, 0));
  OK(cudaStreamEndCapture(a, &graph));
  replay(graph, 5, 9);
}
cudaGraph_t by_hand_graph(int nodes) {
  cudaGraph_t graph = nullptr;
  cudaGraphCreate(&graph, 0);
  void* arguments[] = {&cell};
  cudaKernelNodeParams p{};
  p.func = reinterpret_cast<void*>(add);
  p.gridDim = blocks;
  p.blockDim = threads;
  p.kernelParams = arguments;
  cudaGraphNode_t before{}, node{};
  for (int i = 0; i < nodes; ++i) {
    cudaGraphAddKernelNode(&node, graph, i == 0 ? nullptr : &before, i == 0 ? 0 : 1, &p);
    before = node;
  }
  return graph;
}
void by_hand() {
  replay(by_hand_graph(10), 7, 10);
  replay(by_hand_graph(1), 3, 1);
  replay(by_hand_graph(2), 3, 2);
}
void by_update() {
  Stream s;
  cudaGraph_t graph = by_hand_graph(10);
  cudaGraphExec_t made = nullptr;
  OK(cudaGraphInstantiate(&made, graph, 0));
  OK(cudaGraphLaunch(made, s));
  count(of_graphs, 10);
  ++graphs;
  cudaGraphNode_t nodes[10];
  size_t n = 10;
  OK(cudaGraphGetNodes(graph, nodes, &n));
  int by = 1;
  void* arguments[] = {&cell, &by};
  cudaKernelNodeParams p{};
  p.func = reinterpret_cast<void*>(other);
  p.gridDim = 8;
  p.blockDim = threads;
  p.kernelParams = arguments;
  OK(cudaGraphExecKernelNodeSetParams(made, nodes[3], &p));
  OK(cudaGraphLaunch(made, s));
  count(of_graphs, 9);
  count(of_graphs, 1, 8);
  ++graphs;
  cudaGraph_t again = by_hand_graph(10);
  cudaGraphExecUpdateResultInfo info{};
  OK(cudaGraphExecUpdate(made, again, &info));
  OK(cudaGraphLaunch(made, s));
  OK(cudaDeviceSynchronize());
  count(of_graphs, 10);
  ++graphs;
  OK(cudaGraphExecDestroy(made));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphDestroy(again));
}
void by_upload() {
  Stream s;
  cudaGraph_t graph = by_hand_graph(10);
  cudaGraphExec_t made = nullptr;
  OK(cudaGraphInstantiate(&made, graph, 0));
  OK(cudaGraphUpload(made, s));
  OK(cudaStreamSynchronize(s));
  for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(made, s));
  OK(cudaDeviceSynchronize());
  count(of_graphs, 30);
  graphs += 3;
  OK(cudaGraphExecDestroy(made));
  cudaGraphInstantiateParams p{};
  p.flags = cudaGraphInstantiateFlagUpload;
  p.uploadStream = s;
  OK(cudaGraphInstantiateWithParams(&made, graph, &p));
  for (int i = 0; i < 2; ++i) OK(cudaGraphLaunch(made, s));
  OK(cudaDeviceSynchronize());
  count(of_graphs, 20);
  graphs += 2;
  OK(cudaGraphExecDestroy(made));
  OK(cudaGraphDestroy(graph));
}
void by_children() {
  cudaGraph_t child = by_hand_graph(10), graph = by_hand_graph(1);
  cudaGraphNode_t node{};
  OK(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  replay(graph, 3, 11);
  OK(cudaGraphDestroy(child));
}
void by_driver_ptx() {
  const char* text = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry plus(.param .u64 to)
{ .reg .u64 %a; .reg .u32 %r<2>; .reg .pred %p;
 mov.u32 %r0, %tid.x; setp.ne.u32 %p, %r0, 0; @%p ret;
 ld.param.u64 %a, [to]; cvta.to.global.u64 %a, %a; red.global.add.u32 [%a], 1; ret; })";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  OK(cuModuleLoadData(&module, text));
  OK(cuModuleGetFunction(&function, module, "plus"));
  void* arguments[] = {&cell};
  for (int i = 0; i < 15; ++i)
    OK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr));
  OK(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernel(&kernel, library, "plus"));
  for (int i = 0; i < 15; ++i)
    OK(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), blocks, 1, 1, threads, 1, 1, 0, nullptr,
                      arguments, nullptr));
  OK(cudaDeviceSynchronize());
  count(on_default, 30);
  OK(cuModuleUnload(module));
  OK(cuLibraryUnload(library));
}
void first_launch_in_capture() {
  Stream s;
  cudaGraph_t graph = nullptr;
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  never_first_loaded<<<blocks, threads, 0, s>>>(cell);
  OK(cudaStreamEndCapture(s, &graph));
  replay(graph, 4, 1);
}
// No kernel of the program's: what the report counts here are the driver's own (fills are kernels
// of the driver, if anything is).
void memory() {
  Stream s;
  char *a = nullptr, *b = nullptr, *pool = nullptr;
  size_t pitch = 0;
  std::vector<char> host(1 << 20);
  OK(cudaMalloc(&a, 64 << 20));
  OK(cudaMalloc(&b, 64 << 20));
  for (size_t n : {1u, 4096u, 1u << 20, 64u << 20})
    for (int i = 0; i < 5; ++i) OK(cudaMemsetAsync(a, i, n, s));
  OK(cudaMemset(a, 0, 1 << 20));
  OK(cudaMemset2DAsync(a, 1024, 3, 100, 64, s));
  for (int i = 0; i < 5; ++i) {
    OK(cudaMemcpyAsync(b, a, 8 << 20, cudaMemcpyDeviceToDevice, s));
    OK(cudaMemcpy(a, host.data(), host.size(), cudaMemcpyHostToDevice));
  }
  OK(cudaMemcpy2DAsync(b, 2048, a, 1024, 512, 64, cudaMemcpyDeviceToDevice, s));
  OK(cudaMallocAsync(reinterpret_cast<void**>(&pool), 1 << 20, s));
  OK(cudaFreeAsync(pool, s));
  OK(cudaStreamSynchronize(s));
  OK(cudaMemcpy(host.data(), a, host.size(), cudaMemcpyDeviceToHost));
  char* rows = nullptr;
  OK(cudaMallocPitch(reinterpret_cast<void**>(&rows), &pitch, 1000, 10));
  OK(cudaFree(rows));
  cudaGraph_t graph = nullptr;
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  OK(cudaMemsetAsync(a, 1, 1 << 20, s));
  OK(cudaMemcpyAsync(b, a, 1 << 20, cudaMemcpyDeviceToDevice, s));
  add<<<blocks, threads, 0, s>>>(cell);
  add<<<blocks, threads, 0, s>>>(cell);
  OK(cudaStreamEndCapture(s, &graph));
  replay(graph, 4, 2);
  OK(cudaFree(a));
  OK(cudaFree(b));
}
void second_context() {
  CUdevice device = 0;
  CUcontext context = nullptr, before = nullptr;
  CUdeviceptr at = 0;
  OK(cuCtxGetCurrent(&before));
  OK(cuDeviceGet(&device, 0));
  OK(cuCtxCreate(&context, nullptr, 0, device));
  OK(cuMemAlloc(&at, 4096));
  OK(cuMemsetD32(at, 0, 1024));
  for (int i = 0; i < 6; ++i) add<<<blocks, threads>>>(reinterpret_cast<unsigned*>(at));
  OK(cudaGetLastError());
  OK(cuCtxSynchronize());
  on_default += 6;  // into a cell of its own; and one fill of the driver's
  OK(cuMemFree(at));
  OK(cuCtxDestroy(context));
  OK(cuCtxSetCurrent(before));
}

int main(int argc, char** argv) {
  const std::pair<const char*, void (*)()> all[] = {{"default", by_default},
                                                    {"streams", by_streams},
                                                    {"threads", by_threads},
                                                    {"per_thread", by_per_thread},
                                                    {"attributes", by_attributes},
                                                    {"clusters", by_clusters},
                                                    {"cooperative", cooperatively},
                                                    {"queue", behind_a_long_kernel},
                                                    {"failing", by_failing},
                                                    {"ptx", by_driver_ptx},
                                                    {"hand", by_hand},
                                                    {"upload", by_upload},
                                                    {"update", by_update},
                                                    {"children", by_children},
                                                    {"capture", by_capture},
                                                    {"branches", by_branches},
                                                    {"first_in_capture", first_launch_in_capture},
                                                    {"context", second_context},
                                                    {"memory", memory}};
  if (cudaMalloc(&cell, 4) != cudaSuccess) {
    std::printf("no memory\n");
    return 1;
  }
  const unsigned zero = 0;
  cudaMemcpy(cell, &zero, 4, cudaMemcpyHostToDevice);
  for (const auto& [name, run] : all) {
    bool asked = argc == 1 && std::string(name) != "memory" && std::string(name) != "context";
    for (int i = 1; i < argc; ++i) asked = asked || std::string(argv[i]) == name;
    if (!asked) continue;
    section = name;
    run();
  }
  unsigned ran = 0;
  cudaMemcpy(&ran, cell, 4, cudaMemcpyDeviceToHost);
  const bool right = long(ran) == all_blocks;
  std::printf("%u blocks ran, %ld were launched: %s\n", ran, all_blocks, right ? "right" : "WRONG");
  std::printf("{\"default stream\": %ld, \"stream\": %ld, \"graph\": %ld, \"graphs\": %ld}\n",
              on_default, on_stream, of_graphs, graphs);
  return right && !failed ? 0 : 1;
}
