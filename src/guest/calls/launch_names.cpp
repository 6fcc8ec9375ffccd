// Asks the driver for a kernel's name once.
#include "calls/launch_names.hpp"

#include "calls/own_calls.hpp"
#include "demarc/driver/driver.hpp"

namespace demarc::cuda {
namespace {

// A launch may name a function or a library's kernel.
std::string name_of(const DriverApi& api, CuFunction function) {
  const char* name = nullptr;
  if (api.cuFuncGetName != nullptr && api.cuFuncGetName(&name, function) == cu_success) return name;
  if (api.cuKernelGetName != nullptr &&
      api.cuKernelGetName(&name, reinterpret_cast<CuKernel>(function)) == cu_success) {
    return name;
  }
  return "a kernel of unknown name";
}

}  // namespace

void LaunchNames::note(CuFunction function) {
  launches_of(function).fetch_add(1, std::memory_order_relaxed);
}

std::atomic<std::uint64_t>& LaunchNames::launches_of(CuFunction function) {
  const std::lock_guard lock(mutex_);
  auto& known = launches_[function];
  if (known == nullptr) {
    const OwnCalls own;
    const auto driver = Driver::load();
    known = &record_.counter(what_,
                             driver ? name_of((*driver)->api(), function) : driver.error().message);
  }
  return *known;
}

}  // namespace demarc::cuda
