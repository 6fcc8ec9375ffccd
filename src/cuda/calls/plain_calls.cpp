// Counts launches by kernel, and bytes that are asked for.
#include "calls/plain_calls.hpp"

#include "calls/own_calls.hpp"
#include "demarc/cuda/driver.hpp"

namespace demarc::cuda {
namespace {

// A function that launches, and where its arguments have the kernel.
struct Launcher {
  std::string_view name;  // DriverCall::base_name()
  std::size_t kernel;
};
constexpr Launcher launchers[] = {
    {"cuLaunchKernel", 0}, {"cuLaunchCooperativeKernel", 0}, {"cuLaunchKernelEx", 8}};

// A function that allocates, and where its arguments have the bytes; `height`: of rows that many.
struct Allocator {
  std::string_view name;  // DriverCall::versioned_name()
  std::size_t bytes;
  std::size_t height = 0;
};
constexpr Allocator allocators[] = {{"cuMemAlloc_v2", 8},           {"cuMemAllocAsync", 8},
                                    {"cuMemAllocFromPoolAsync", 8}, {"cuMemAllocManaged", 8},
                                    {"cuMemAllocPitch_v2", 16, 24}, {"cuMemCreate", 8}};

template <class Row, std::size_t Count>
const Row* row_of(const Row (&rows)[Count], std::string_view name) {
  const auto found = std::find_if(std::begin(rows), std::end(rows),
                                  [&](const Row& row) { return row.name == name; });
  return found == std::end(rows) ? nullptr : found;
}

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
  if (const Launcher* row = row_of(launchers, call.base_name())) {
    launches_of(call.argument<CuFunction>(row->kernel)).fetch_add(1, std::memory_order_relaxed);
  } else if (const Allocator* made = row_of(allocators, call.versioned_name())) {
    const auto bytes = call.argument<std::size_t>(made->bytes);
    record_.note_plain_bytes(made->height == 0 ? bytes
                                               : bytes * call.argument<std::size_t>(made->height));
  }
}

}  // namespace demarc::cuda
