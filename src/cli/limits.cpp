// What the limits of the process (ulimit) mean for every verb: an error, and never its death.
#include "limits.hpp"

#include <sys/resource.h>

#include <csignal>

namespace demarc::cli {
namespace {

constexpr rlim_t least_stack_bytes = 1U << 20U;

// With a handler a file that may grow no more is an error of the call that writes, and programs
// that are started have the default again. Who ignores the signal hands that on.
void take_file_limit_as_an_error() {
  struct sigaction now {};
  if (::sigaction(SIGXFSZ, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  now.sa_handler = [](int) {};
  now.sa_flags = SA_RESTART;
  ::sigaction(SIGXFSZ, &now, nullptr);
}

}  // namespace

Result<void> meet_limits() {
  take_file_limit_as_an_error();
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= least_stack_bytes) return {};
  return missing_capability(
      "the stack of this process may have {} KiB, and {} are needed: raise the limit (ulimit -s)",
      stack.rlim_cur / 1024, least_stack_bytes / 1024);
}

}  // namespace demarc::cli
