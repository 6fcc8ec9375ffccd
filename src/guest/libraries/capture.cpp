// libdemarc_capture.so: takes launches out of a program that knows nothing of it, for `demarc
// capture`. The driver loads this library when it starts (CUDA_INJECTION64_PATH, the door made for
// profilers) and calls InitializeInjection(). It does not change what the program does, and gives
// no partition.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "capture/launch_capture.hpp"
#include "demarc/driver/callback_table.hpp"
#include "demarc/driver/function_calls.hpp"

namespace {

using demarc::cuda::CallbackTable;
using demarc::cuda::LaunchCapture;

LaunchCapture* capture = nullptr;

void* loaded_driver() {
  const char* path = std::getenv("DEMARC_LIBCUDA");
  return ::dlopen(path != nullptr && *path != '\0' ? path : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
}

void on_call(void* /*user*/, int /*domain*/, int /*id*/, const void* params) {
  const auto call = demarc::cuda::DriverCall::read(params);
  if (call) {
    capture->watch(*call);
  } else {
    capture->fail("a call of the driver whose callback has unknown parameters");
  }
}

demarc::Result<void> begin() {
  void* driver = loaded_driver();
  if (driver == nullptr) {
    return demarc::missing_capability("the driver that called is not libcuda.so.1");
  }
  const auto get_table =
      reinterpret_cast<demarc::cuda::GetExportTable>(::dlsym(driver, "cuGetExportTable"));
  static CallbackTable table;
  DEMARC_CHECK(table.subscribe(get_table, "of this process", &on_call, nullptr));
  return table.enable_functions();
}

}  // namespace

// The driver asks for it by this name. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* order = std::getenv(demarc::cuda::capture_variable);
  if (order == nullptr || capture != nullptr) return 1;
  auto plan = demarc::cuda::read_order(order);
  if (!plan) {
    std::fprintf(stderr, "demarc capture: %s\n", plan.error().message.c_str());
    return 1;
  }
  // For ever: launches may come from the destructors of others.
  capture = new LaunchCapture(std::move(*plan));
  if (auto begun = begin(); !begun) capture->fail(begun.error().message);
  return 1;
}
