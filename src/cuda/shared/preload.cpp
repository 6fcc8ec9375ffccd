// libdemarc_preload.so: puts the mask of `demarc exec` into every launch of a program that knows
// nothing of it. The driver loads this library when it starts (CUDA_INJECTION64_PATH, the door made
// for profilers) and calls InitializeInjection().
//
// Fails closed: a process whose launches cannot be confined is ended with exit code 2 or 3, and one
// that does not load this library gets no context from `demarc exec`, which watches from outside.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "calls/own_calls.hpp"
#include "demarc/cuda/control.hpp"
#include "driver/driver_call.hpp"
#include "exec/end_by_signal.hpp"
#include "exec/host_memory.hpp"
#include "exec/managed_modules.hpp"
#include "exec/program_claim.hpp"
#include "exec/seccomp_filter.hpp"
#include "exec/tenant_process.hpp"

namespace {

using demarc::cuda::Control;
using demarc::cuda::LaunchCounters;
using demarc::cuda::LaunchHook;
using demarc::cuda::OwnCommand;
using demarc::cuda::tell_supervisor;

void* loaded_driver() {
  const char* path = std::getenv("DEMARC_LIBCUDA");
  return ::dlopen(path != nullptr && *path != '\0' ? path : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
}

[[noreturn]] void stop(const char* message, int code) {
  std::fprintf(stderr, "demarc exec: process %d stopped: %s\n", static_cast<int>(::getpid()),
               message);
  static_cast<void>(tell_supervisor(OwnCommand::stopped, 0));
  ::_exit(code);
}

void stop_unconfined(const char* message) {
  stop(message, 3);
}

template <class T>
void stop_without(const demarc::Result<T>& needed) {
  if (!needed) stop(needed.error().message.c_str(), 2);
}

// From now on the supervisor lets this process make contexts.
void report_hooked(const demarc::cuda::ControlBlock& block) {
  const int error = tell_supervisor(OwnCommand::hooked, block.token[0]);
  if (error == 0) return;
  const std::string why = error == EACCES
                              ? "its control block belongs to another program, or cannot be read"
                              : "it was not started under one, or that one has ended";
  stop_unconfined(
      ("no demarc exec watches it: " + why + " (" + std::strerror(error) + ")").c_str());
}

LaunchCounters* counters = nullptr;
const demarc::cuda::ProgramRecord* record = nullptr;  // of a program that has a lease
bool host_memory_is_refused = false;
demarc::cuda::TenantProcess* tenant = nullptr;

void tell(const std::string& line) {
  std::fprintf(stderr, "demarc exec: process %d: %s\n", static_cast<int>(::getpid()), line.c_str());
}

void refuse_call(const demarc::cuda::DriverCall& call, const std::string& why) {
  call.answer(demarc::cuda::cu_error_not_supported);
  counters->host_memory_refused.fetch_add(1);
  tell(std::string(call.name()) + " was refused: " + why);
}

bool refused_host_memory(const demarc::cuda::DriverCall& call) {
  if (demarc::cuda::gives_host_memory(call)) {
    refuse_call(call, "it would give kernels memory of the host");
    return true;
  }
  const auto why = demarc::cuda::refused_module(call);
  if (why) refuse_call(call, *why);
  return why.has_value();
}

void watch(const demarc::cuda::DriverCall& call) {
  demarc::cuda::end_by_signal::hold();
  if (call.leaving()) return;
  if (host_memory_is_refused && !demarc::cuda::OwnCalls::active() && refused_host_memory(call)) {
    return;
  }
  if (tenant != nullptr) stop_without(tenant->serve(call));
}

// The process has its memory in the tenant's colours, or ends. For ever: other libraries free what
// they allocated when the process ends.
void attach(demarc::cuda::ControlBlock& block) {
  auto attached = demarc::cuda::TenantProcess::attach(block, &tell);
  stop_without(attached);
  tenant = attached->release();
  stop_without(demarc::cuda::end_by_signal::take_signals(block.lease_socket));
  record = &block.record;
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

// What the program of this process loaded, launched and was refused until now, as `demarc exec
// --report --json` says it at the end (schema demarc.exec.tenant/1). The text stays until the next
// call of the same thread; null where the program has no lease.
extern "C" __attribute__((visibility("default"))) const char* demarc_tenant_report() {
  if (record == nullptr) return nullptr;
  thread_local std::string text;
  const char* name = std::getenv(demarc::cuda::tenant_variable);
  text = report_to_json(demarc::cuda::report_of(name == nullptr ? "" : name, *record));
  return text.c_str();
}

// The driver asks for it by this name. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* path = std::getenv(demarc::cuda::control_variable);
  if (path == nullptr || hooked) return 1;
  auto opened = Control::open(path);
  stop_without(opened);
  // For ever: launches may come from the destructors of others.
  static const Control* const control = new Control(std::move(*opened));
  auto& block = control->block();
  stop_without(demarc::cuda::keep_claim(path, block));
  void* driver = loaded_driver();
  if (driver == nullptr) stop("the driver that called is not libcuda.so.1", 2);
  const auto get_table =
      reinterpret_cast<demarc::cuda::GetExportTable>(::dlsym(driver, "cuGetExportTable"));
  auto hook = LaunchHook::install(get_table, "of this process", LaunchHook::Scope::process);
  stop_without(hook);
  (*hook)->use_storage(nullptr, &block.counters);
  (*hook)->use_ceiling(&block.mask);
  (*hook)->set_refusal_handler(&stop_unconfined);
  (*hook)->share_largest_cluster(&block.largest_cluster);
  if (block.sync_domain >= 0)
    (*hook)->set_sync_domain(static_cast<std::uint32_t>(block.sync_domain));
  (*hook)->expect(block.capability);
  (*hook)->count_masked(block.count_launches != 0);
  if (block.count_paths != 0) stop_without((*hook)->count_paths());
  counters = &block.counters;
  host_memory_is_refused = block.no_host_memory != 0;
  if (block.lease_token[0] != '\0') attach(block);
  if (host_memory_is_refused || tenant != nullptr) stop_without((*hook)->watch_calls(&watch));
  report_hooked(block);
  hooked = true;
  call_chained_injection();
  return 1;
}
