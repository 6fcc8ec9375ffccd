// libdemarc_preload.so: puts the mask of `demarc exec` into every launch of a program that knows
// nothing of it. The driver loads this library when it starts (CUDA_INJECTION64_PATH, the door made
// for profilers) and calls InitializeInjection(); LD_PRELOAD brings it into every process besides,
// so that one whose driver was never hooked is noticed when it ends.
//
// Fails closed: a process whose launches cannot be confined is ended with exit code 2 or 3.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "demarc/cuda/control.hpp"

namespace {

using demarc::cuda::Control;
using demarc::cuda::LaunchHook;

std::optional<Control>& control() {
  static std::optional<Control> opened;
  return opened;
}

void* loaded_driver() {
  const char* path = std::getenv("DEMARC_LIBCUDA");
  return ::dlopen(path != nullptr && *path != '\0' ? path : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
}

[[noreturn]] void stop(const char* message, int code) {
  std::fprintf(stderr, "demarc exec: process %d stopped: %s\n", static_cast<int>(::getpid()),
               message);
  if (control()) control()->block().stopped.fetch_add(1);
  ::_exit(code);
}

void stop_unconfined(const char* message) {
  stop(message, 3);
}

// Another tool that wanted the same door is let in too.
void call_chained_injection() {
  const char* path = std::getenv(demarc::cuda::chained_injection_variable);
  if (path == nullptr || *path == '\0') return;
  void* library = ::dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return;
  const auto entry = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  if (entry != nullptr) entry();
}

bool hooked = false;

}  // namespace

// The driver asks for it by this name. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* path = std::getenv(demarc::cuda::control_variable);
  if (path == nullptr || hooked) return 1;
  auto opened = Control::open(path);
  if (!opened) stop(opened.error().message.c_str(), 2);
  control().emplace(std::move(*opened));
  auto& block = control()->block();
  void* driver = loaded_driver();
  if (driver == nullptr) stop("the driver that called is not libcuda.so.1", 2);
  const auto get_table =
      reinterpret_cast<demarc::cuda::GetExportTable>(::dlsym(driver, "cuGetExportTable"));
  auto hook = LaunchHook::install(get_table, "of this process", LaunchHook::Scope::process);
  if (!hook) stop(hook.error().message.c_str(), 2);
  (*hook)->use_storage(&block.mask, &block.counters);
  (*hook)->set_refusal_handler(&stop_unconfined);
  (*hook)->share_largest_cluster(&block.largest_cluster);
  (*hook)->expect(block.capability);
  (*hook)->count_masked(block.count_paths != 0);
  if (block.count_paths != 0) {
    if (const auto counting = (*hook)->count_paths(); !counting) {
      stop(counting.error().message.c_str(), 2);
    }
  }
  hooked = true;
  block.hooked.fetch_add(1);
  call_chained_injection();
  return 1;
}

namespace {

// At the end of a process that initialised the driver without having been hooked.
__attribute__((destructor)) void notice_unhooked() {
  const char* path = std::getenv(demarc::cuda::control_variable);
  if (path == nullptr || hooked) return;
  void* driver = loaded_driver();
  if (driver == nullptr) return;
  using GetCurrent = int (*)(void**);
  const auto get_current = reinterpret_cast<GetCurrent>(::dlsym(driver, "cuCtxGetCurrent"));
  void* context = nullptr;
  constexpr int not_initialised = 3;
  constexpr int ending = 4;
  const int code = get_current == nullptr ? not_initialised : get_current(&context);
  if (code == not_initialised || code == ending) return;
  std::fprintf(stderr,
               "demarc exec: process %d used the GPU UNCONFINED: its driver was not hooked\n",
               static_cast<int>(::getpid()));
  if (auto opened = Control::open(path)) opened->block().unhooked.fetch_add(1);
}

}  // namespace
