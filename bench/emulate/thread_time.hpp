// CPU time of this thread, as the emulator counts it: other programs on the machine do not count.
#pragma once

#include <time.h>

#include <functional>

namespace demarc::bench {

inline double cpu_now() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline double seconds_of(const std::function<void()>& body) {
  const double start = cpu_now();
  body();
  return cpu_now() - start;
}

}  // namespace demarc::bench
