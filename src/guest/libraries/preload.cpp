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
#include "demarc/driver/driver_call.hpp"
#include "demarc/driver/gpu.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/guest/host_memory.hpp"
#include "demarc/guest/mps_client.hpp"
#include "demarc/guest/program_claim.hpp"
#include "demarc/guest/seccomp_filter.hpp"
#include "process/cooperative_launches.hpp"
#include "process/end_by_signal.hpp"
#include "process/refused_modules.hpp"
#include "process/tenant_process.hpp"

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

// The library that an address lies in.
Dl_info library_at(const void* address) {
  Dl_info found{};
  ::dladdr(address, &found);
  return found;
}

[[noreturn]] void stop(const char* message, int code) {
  std::fprintf(stderr, "demarc exec: process %d stopped: %s\n", static_cast<int>(::getpid()),
               message);
  static_cast<void>(tell_supervisor(OwnCommand::stopped));
  ::_exit(code);
}

void stop_unconfined(const char* message) {
  stop(message, 3);
}

template <class T>
void stop_without(const demarc::Result<T>& needed) {
  if (!needed) stop(needed.error().message.c_str(), 2);
}

[[noreturn]] void stop_second_driver(const char* file) {
  stop(("it starts a second driver of CUDA (" + std::string(file) +
        "), and the launches of one driver alone can be confined: let it load one libcuda")
           .c_str(),
       3);
}

// From now on the supervisor lets this process make contexts.
void report_hooked(const demarc::cuda::ControlBlock& block) {
  const int error = tell_supervisor(OwnCommand::hooked, block.report_token);
  if (error == 0) return;
  if (error == EEXIST) stop_second_driver("in another namespace of the linker's");
  const std::string why = error == EACCES
                              ? "its control block belongs to another program, or cannot be read"
                              : "it was not started under one, or that one has ended";
  stop_unconfined(
      ("no demarc exec watches it: " + why + " (" + std::strerror(error) + ")").c_str());
}

LaunchCounters* counters = nullptr;
const demarc::cuda::ProgramRecord* record = nullptr;  // record of a program that has a lease
demarc::cuda::ControlBlock* control_block = nullptr;
demarc::cuda::CooperativeLaunches* cooperative = nullptr;
bool host_memory_is_refused = false;
bool looks_for_launchers = false;  // in what is loaded
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
    refuse_call(call, "it would give kernels host memory");
    return true;
  }
  const auto why = demarc::cuda::refused_module(call);
  if (why) refuse_call(call, *why);
  return why.has_value();
}

// Through this table its holder could switch the hook off.
bool is_callback_table(const demarc::cuda::DriverCall& call) {
  const demarc::cuda::CuUuid* id = call.parameters<demarc::cuda::ExportTableOf>().id;
  return id != nullptr && std::memcmp(id, &demarc::cuda::callback_table_id, sizeof *id) == 0;
}

// What holds of every program. True: the call was answered.
bool refused_anywhere(const demarc::cuda::DriverCall& call) {
  if (call.does(demarc::cuda::does::gives_tables)) {
    if (!is_callback_table(call)) return false;
    call.answer(demarc::cuda::cu_error_not_supported);
    tell(
        "cuGetExportTable was refused: a profiler (nsys, ncu, CUPTI, torch.profiler), or a library "
        "that sets masks, asks for the driver's callbacks; they have one subscriber in a process, "
        "and demarc exec is that; profile the program without demarc exec");
    return true;
  }
  if (looks_for_launchers) {
    if (const auto launching = demarc::cuda::launching_module(call)) {
      call.answer(demarc::cuda::cu_error_not_supported);
      counters->launchers.fetch_add(1);
      tell(std::string(call.name()) + " was refused: " + *launching);
      return true;
    }
  }
  const auto why = cooperative->refusal(call);
  if (!why) return false;
  call.answer(demarc::cuda::cu_error_cooperative_too_large);
  counters->too_large.fetch_add(1);
  tell(std::string(call.name()) + " was refused: " + *why);
  return true;
}

// The proof of a program without a lease ran in a client of MPS, among others that are.
void check_mps_as_proved(const demarc::cuda::DriverCall& call) {
  if (control_block->needs_mps == 0 || !call.does(demarc::cuda::does::makes_context)) return;
  const demarc::cuda::OwnCalls own;
  const auto driver = demarc::cuda::Driver::load();
  stop_without(driver);
  demarc::cuda::CuDevice device{};
  stop_without((*driver)->check((*driver)->api().cuDeviceGet(&device, 0), "cuDeviceGet"));
  stop_without(
      demarc::cuda::check_mps_client((*driver)->api(), device, demarc::cuda::mps_pipe_folder()));
}

// For a program without a lease that may have host memory.
std::uint32_t watched_functions() {
  namespace does = demarc::cuda::does;
  return does::may_cooperate | does::gives_tables | does::makes_context |
         (looks_for_launchers ? does::loads_image | does::loads_file : does::nothing);
}

void watch(const demarc::cuda::DriverCall& call) {
  demarc::cuda::end_by_signal::hold();
  if (call.leaving()) {
    if (tenant != nullptr) tenant->note_result(call);
    return;
  }
  if (!demarc::cuda::OwnCalls::active()) {
    if (refused_anywhere(call)) return;
    check_mps_as_proved(call);
  }
  if (host_memory_is_refused && !demarc::cuda::OwnCalls::active() && refused_host_memory(call)) {
    return;
  }
  if (tenant == nullptr) return;
  stop_without(tenant->serve(call));
  if (call.answered()) tenant->note_result(call);  // the driver does not tell that it is left
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
const void* hooked_driver = nullptr;  // where it was loaded

// Another tool, from which a driver may call, is none.
bool is_driver(const Dl_info& library) {
  if (library.dli_fname == nullptr) return false;
  void* opened = ::dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (opened == nullptr) return false;
  const void* table = ::dlsym(opened, "cuGetExportTable");
  ::dlclose(opened);
  return table != nullptr && library_at(table).dli_fbase == library.dli_fbase;
}

// The driver that called must be the one whose functions Demarc calls.
void check_caller(const Dl_info& caller, const Dl_info& driver) {
  if (caller.dli_fbase == driver.dli_fbase || !is_driver(caller)) return;
  stop((std::string("the driver that called is ") + caller.dli_fname + ", and not " +
        driver.dli_fname + ": name it by DEMARC_LIBCUDA")
           .c_str(),
       2);
}

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
  if (path == nullptr) return 1;
  const Dl_info caller = library_at(__builtin_return_address(0));
  if (hooked) {
    if (caller.dli_fbase != hooked_driver && is_driver(caller)) {
      stop_second_driver(caller.dli_fname);
    }
    return 1;
  }
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
  check_caller(caller, library_at(reinterpret_cast<const void*>(get_table)));
  auto hook = LaunchHook::install(get_table, "of this process", LaunchHook::Scope::process);
  stop_without(hook);
  (*hook)->use_storage(nullptr, &block.counters);
  (*hook)->use_ceiling(&block.mask, &block.masks);
  (*hook)->set_refusal_handler(&stop_unconfined);
  (*hook)->set_new_mask_handler([] { stop_without(demarc::cuda::follow_claim(*control_block)); });
  (*hook)->share_largest_cluster(&block.largest_cluster);
  if (block.sync_domain >= 0)
    (*hook)->set_sync_domain(static_cast<std::uint32_t>(block.sync_domain));
  (*hook)->expect(block.capability);
  if (block.count_paths != 0) stop_without((*hook)->count_paths());
  counters = &block.counters;
  control_block = &block;
  cooperative = new demarc::cuda::CooperativeLaunches(block.mask, block.sms_per_tpc);
  host_memory_is_refused = block.no_host_memory != 0;
  // Descriptors tell on Hopper alone; kernels that are rewritten cannot launch others anyway.
  demarc::cuda::HardwareMask mask;
  constexpr std::uint32_t hopper = 9;
  const bool has_lease = block.lease_token[0] != '\0';
  looks_for_launchers =
      block.capability.major != hopper && block.mask.load(mask) &&
      (!has_lease || block.allow_plain != 0 || block.windows != demarc::cuda::WindowUse::never);
  (*hook)->know_launchers(looks_for_launchers || has_lease);
  if (has_lease) attach(block);
  if (host_memory_is_refused || tenant != nullptr) {
    stop_without((*hook)->watch_calls(&watch));
  } else {
    stop_without((*hook)->watch_some_calls(&watch, watched_functions()));
  }
  report_hooked(block);
  hooked_driver = caller.dli_fbase;
  hooked = true;
  call_chained_injection();
  return 1;
}
