// What becomes of the clients of MPS when one of them ends while its kernels run: one that goes on
// as before, and those that begin then. Needs a server of MPS (nvidia-cuda-mps-control -d).
//   nvcc -O3 -std=c++17 -arch=sm_90 -o ended_client ended_client.cu -lcuda
//   ./ended_client running 9 6     by signal 9, six times; signal 0 ends no client
//   ./ended_client WAY SIGNAL TIMES
// WAY: running     the signal comes while kernels run
//      waited      ... once the client has waited for them
//      terminated  ... once MPS has ended them (terminate_client)
//      exit, _exit the client calls that function while they run; the signal is ignored
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

constexpr int begun_later = 5, seconds = 10, linger = 3;
constexpr unsigned pause_us = 100'000;

__global__ void add(float* to, size_t count) {
  for (int trip = 0; trip < 64; ++trip) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
         i += size_t(gridDim.x) * blockDim.x) {
      to[i] += 1;
    }
  }
}

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

volatile std::sig_atomic_t asked_to_stop = 0;

// Keeps the card busy until it is ended; once it is asked to, it waits for its kernels, or leaves
// without.
int be_busy(const std::string& way) {
  std::signal(SIGUSR1, [](int) { asked_to_stop = 1; });
  constexpr size_t count = size_t(1) << 29;
  float* data = nullptr;
  if (cudaMalloc(&data, count * sizeof *data) != cudaSuccess) return 1;
  cudaStream_t streams[4];
  for (auto& stream : streams) cudaStreamCreate(&stream);
  for (;;) {
    for (auto& stream : streams) add<<<528, 512, 0, stream>>>(data, count);
    if (asked_to_stop != 0 && way == "exit") std::exit(0);
    if (asked_to_stop != 0 && way == "_exit") _exit(0);
    if (const cudaError_t code = cudaDeviceSynchronize()) {
      printf("  the busy one: error %d\n", code);
      for (;;) pause();
    }
    if (asked_to_stop != 0) {
      for (;;) pause();
    }
  }
}

// A client that has run for long: says when its context fails, and stays a while, as a program that
// cleans up does.
int go_on(double end) {
  float* data = nullptr;
  if (cudaMalloc(&data, 1 << 20) != cudaSuccess) return 1;
  const double begun = now();
  for (; now() < end; usleep(1000)) {
    add<<<8, 256>>>(data, 1 << 18);
    if (const cudaError_t code = cudaDeviceSynchronize()) {
      printf("  a neighbour: error %d after %.1f s\n", code, now() - begun);
      return sleep(linger), 1;
    }
  }
  return printf("  a neighbour: nothing\n"), 0;
}

// A client that begins: tries until the driver starts.
int begin(int number) {
  const double begun = now();
  int refused = 0;
  CUresult code = cuInit(0);
  for (; code == CUDA_ERROR_MPS_SERVER_NOT_READY && now() - begun < seconds; code = cuInit(0)) {
    ++refused;
    usleep(pause_us);
  }
  CUcontext context = nullptr;
  const CUresult made = code == CUDA_SUCCESS ? cuDevicePrimaryCtxRetain(&context, 0) : code;
  printf("  begun %d: cuInit %d after %d refusals, context %d, %.1f s\n", number, code, refused,
         made, now() - begun);
  return made != CUDA_SUCCESS;
}

long answer_of_mps(const std::string& question) {
  FILE* answer = popen(("echo " + question + " | nvidia-cuda-mps-control").c_str(), "r");
  char text[4096] = "";
  if (answer != nullptr && fgets(text, sizeof text, answer) == nullptr) text[0] = '\0';
  if (answer != nullptr) pclose(answer);
  return atol(text);
}

// Ends the busy client in that way.
void end(pid_t busy, const std::string& way, int signal) {
  if (way == "terminated") {
    const double begun = now();
    const std::string server = std::to_string(answer_of_mps("get_server_list"));
    answer_of_mps("terminate_client " + server + " " + std::to_string(busy));
    printf("  terminate_client: %.2f s\n", now() - begun);
  } else if (way != "running") {
    kill(busy, SIGUSR1);
    sleep(1);
  }
  if (way != "exit" && way != "_exit" && signal != 0) kill(busy, signal);
}

template <class Work>
pid_t in_process(Work work) {
  const pid_t process = fork();
  if (process != 0) return process;
  const int code = work();
  fflush(stdout);
  _exit(code);
}

int main(int count, char** arguments) {
  if (count != 4) return fprintf(stderr, "ended_client WAY SIGNAL TIMES\n"), 64;
  const std::string way = arguments[1];
  const int signal = atoi(arguments[2]);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  for (int time = 0; time < atoi(arguments[3]); ++time) {
    printf("%s, signal %d, time %d\n", way.c_str(), signal, time + 1);
    const double until = now() + 5 + seconds / 2.0;
    std::vector<pid_t> processes{in_process([&] { return go_on(until); })};
    const pid_t busy = in_process([&] { return be_busy(way); });
    sleep(5);
    end(busy, way, signal);
    for (int i = 0; i < begun_later; ++i) {
      processes.push_back(in_process([&] { return begin(i); }));
      usleep(4 * pause_us);
    }
    for (const pid_t process : processes) waitpid(process, nullptr, 0);
    kill(busy, SIGKILL);
    waitpid(busy, nullptr, 0);
    sleep(1);
  }
}
