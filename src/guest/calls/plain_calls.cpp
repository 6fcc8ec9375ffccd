// Counts launches by kernel, and bytes that are asked for.
#include "calls/plain_calls.hpp"

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

void PlainCalls::note_launch(CuFunction function) {
  launches_of(function).fetch_add(1, std::memory_order_relaxed);
}

std::atomic<std::uint64_t>& PlainCalls::launches_of(CuFunction function) {
  const std::lock_guard lock(mutex_);
  auto& known = launches_[function];
  if (known == nullptr) {
    const OwnCalls own;
    const auto driver = Driver::load();
    known = &record_.counter(Recorded::plain_kernel,
                             driver ? name_of((*driver)->api(), function) : driver.error().message);
  }
  return *known;
}

void PlainCalls::watch(const DriverCall& call) {
  if (call.rule() == Rule::unknown) return;  // its parameters may lie otherwise
  switch (call.function()) {
    case DriverFunction::cuLaunchKernel:
    case DriverFunction::cuLaunchCooperativeKernel:
      return note_launch(call.parameters<LaunchCooperative>().function);
    case DriverFunction::cuLaunchKernelEx:
      return note_launch(call.parameters<LaunchKernelEx>().function);
    case DriverFunction::cuMemAlloc_v2:
    case DriverFunction::cuMemAllocAsync:
    case DriverFunction::cuMemAllocFromPoolAsync:
    case DriverFunction::cuMemAllocManaged:
      return record_.note_plain_bytes(call.parameters<Allocate>().bytes);
    case DriverFunction::cuMemAllocPitch_v2: {
      const auto given = call.parameters<AllocatePitch>();
      return record_.note_plain_bytes(given.width * given.height);
    }
    case DriverFunction::cuMemCreate:
      return record_.note_plain_bytes(call.parameters<CreateMemory>().bytes);
    default:
      return;
  }
}

}  // namespace demarc::cuda
