// Memory that the program shares with another process of its tenant, by CUDA IPC.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "subject_card.hpp"

namespace subject {
namespace {

constexpr std::size_t words = 16384;
unsigned long long shared = 0;  // NOLINT: the memory, in whichever process

struct Handle {
  char bytes[64] = {};
};

}  // namespace

// The handle is there once the file has its name.
int share(const std::string& path) {
  Handle handle;
  std::vector<unsigned> numbers(words);
  for (std::size_t i = 0; i < words; ++i) numbers[i] = static_cast<unsigned>(i * 3);
  call("cuCtxSetCurrent", context);
  call("cuMemAlloc_v2", &shared, words * sizeof(unsigned));
  call("cuMemcpyHtoD_v2", shared, static_cast<const void*>(numbers.data()),
       words * sizeof(unsigned));
  const int code = call("cuIpcGetMemHandle", &handle, shared + 8);
  std::ofstream(path + ".new", std::ios::binary).write(handle.bytes, sizeof handle.bytes);
  std::filesystem::rename(path + ".new", path);
  return code;
}

int borrow(const std::string& path) {
  Handle handle;
  std::ifstream(path, std::ios::binary).read(handle.bytes, sizeof handle.bytes);
  call("cuCtxSetCurrent", context);
  return call("cuIpcOpenMemHandle_v2", &shared, handle, 1U);
}

int give_shared_back() {
  return call("cuIpcCloseMemHandle", shared);
}

int free_shared() {
  return call("cuMemFree_v2", shared);
}

int count_on_shared() {
  return count_on(shared, words);
}

std::string read_shared(unsigned added) {
  std::vector<unsigned> numbers(words);
  const int code =
      call("cuMemcpyDtoH_v2", static_cast<void*>(numbers.data()), shared, words * sizeof(unsigned));
  if (code != 0) return "download " + std::to_string(code);
  for (std::size_t i = 0; i < words; ++i) {
    if (numbers[i] != i * 3 + added) return "wrong at " + std::to_string(i);
  }
  return "right";
}

}  // namespace subject
