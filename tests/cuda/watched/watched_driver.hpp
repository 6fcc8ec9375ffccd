// A driver between libdemarc_blas.so and the stand-in (DEMARC_WATCHED_LIBCUDA names its file): a
// test says which call fails, and sees what the library asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace demarc::fake {

struct WatchedLaunch {
  std::string kernel;
  std::uint32_t grid[3] = {};
  std::uint32_t threads = 0;
  std::uint32_t shared_bytes = 0;
  void* stream = nullptr;
  const void* arguments = nullptr;  // as long as the call
};

struct WatchedDriver {
  std::string fails;  // a function of the driver; empty: none
  int code = 0;       // with this error,
  int passes = 0;     // after so many calls that pass
  // The context that is said to be current; null: that of the stand-in.
  void* context = nullptr;
  unsigned long long context_id = 1;
  bool runs = true;  // false: launches succeed and run nothing
  void (*launched)(const WatchedLaunch&) = nullptr;
  // What the library did.
  std::vector<std::string> kernels;    // functions that were looked up, as often as they were
  std::vector<std::string> unrelaxed;  // calls that a capture of this thread would refuse
  unsigned modules = 0;                // that were loaded
  int capture_mode = 0;                // CUstreamCaptureMode that calling threads have
};

}  // namespace demarc::fake

extern "C" demarc::fake::WatchedDriver* watched_driver();
