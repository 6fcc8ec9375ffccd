// The driver's symbols for the driver itself, devices and contexts.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "fake_told.hpp"

namespace {
CUctx_st* the_context() {
  static int context = 0;
  return reinterpret_cast<CUctx_st*>(&context);
}

std::string synchronized_by;  // a file; empty: nothing holds cuCtxSynchronize()

void wait_for_file() {
  if (synchronized_by.empty()) return;
  std::ofstream(synchronized_by + ".held");
  while (::access(synchronized_by.c_str(), F_OK) != 0) ::usleep(1000);
  std::ofstream(synchronized_by + ".seen");
}

// Contexts are dead while the file is there that DEMARC_FAKE_DEAD names.
bool is_dead() {
  const char* file = std::getenv("DEMARC_FAKE_DEAD");
  return file != nullptr && ::access(file, F_OK) == 0;
}

}  // namespace

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE CuResult cuInit(unsigned flags) {
  if (flags != 0) return error_invalid;
  FakeGpu& gpu = FakeGpu::get();
  if (gpu.initialised) return cu_success;
  gpu.initialised = true;
  configure_from_environment(gpu.config);
  clear_stream_field(gpu.default_stream);
  // Tools are injected as the real driver does it.
  if (const char* path = std::getenv("CUDA_INJECTION64_PATH")) {
    if (void* library = ::dlopen(path, RTLD_NOW)) {
      const auto entry = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
      if (entry != nullptr && entry() != 1) return error_invalid;
    }
  }
  return cu_success;
}
// As another tool that is injected: leaves a trace in the environment.
// NOLINTNEXTLINE(readability-identifier-naming): the driver asks for it by this name
FAKE int InitializeInjection() {
  ::setenv("DEMARC_FAKE_INJECTED", "yes", 1);
  return 1;
}
FAKE CuResult cuDriverGetVersion(int* version) {
  if (!FakeGpu::get().initialised) configure_from_environment(FakeGpu::get().config);
  *version = FakeGpu::get().config.cuda_version;
  return cu_success;
}
FAKE CuResult cuGetErrorName(CuResult code, const char** text) {
  switch (code) {
    case cu_success:
      *text = "CUDA_SUCCESS";
      break;
    case error_invalid_ptx:
      *text = "CUDA_ERROR_INVALID_PTX";
      break;
    case error_illegal_address:
      *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    case error_misaligned_address:
      *text = "CUDA_ERROR_MISALIGNED_ADDRESS";
      break;
    default:
      *text = "CUDA_ERROR_FAKE";
      break;
  }
  return cu_success;
}
FAKE CuResult cuGetErrorString(CuResult, const char** text) {
  *text = "as the stand-in says";
  return cu_success;
}
FAKE CuResult cuGetExportTable(const void** table, const CuUuid* id) {
  return told(
      135, "cuGetExportTable",
      [&] {
        if (!FakeGpu::get().config.callback) return error_not_found;
        *table = callback_table();
        return cu_success;
      },
      table, id);
}
FAKE CuResult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(visible_devices().size());
  return cu_success;
}
FAKE CuResult cuDeviceGet(CuDevice* device, int ordinal) {
  const auto visible = visible_devices();
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= visible.size()) return 101;
  *device = visible[static_cast<std::size_t>(ordinal)];
  return cu_success;
}
FAKE CuResult cuDeviceGetName(char* name, int size, CuDevice) {
  std::snprintf(name, static_cast<std::size_t>(size), "%s", FakeGpu::get().config.name);
  return cu_success;
}
FAKE CuResult cuDeviceGetUuid(CuUuid* uuid, CuDevice device) {
  *uuid = card_uuid(device);
  return cu_success;
}
FAKE CuResult cuDeviceGetUuid_v2(CuUuid* uuid, CuDevice device) {
  const std::uint8_t instance = FakeGpu::get().config.instance_uuid;
  if (instance == 0) return cuDeviceGetUuid(uuid, device);
  std::memset(uuid->bytes, instance, sizeof uuid->bytes);
  return cu_success;
}
FAKE CuResult cuDeviceGetAttribute(int* value, int attribute, CuDevice) {
  const FakeConfig& config = FakeGpu::get().config;
  switch (attribute) {
    case attribute_sm_count:
      *value = static_cast<int>(FakeGpu::get().shown_sms());
      break;
    case attribute_capability_major:
      *value = config.capability_major;
      break;
    case attribute_capability_minor:
      *value = config.capability_minor;
      break;
    case attribute_compute_mode:
      *value = config.compute_mode;
      break;
    case attribute_mps_enabled:
      if (config.mps_attribute == 2) return error_invalid;
      *value = config.mps_attribute >= 0 ? config.mps_attribute : (config.virtual_sms ? 1 : 0);
      break;
    case attribute_sync_domains:
      if (config.sync_domains < 2) return error_invalid;
      *value = static_cast<int>(config.sync_domains);
      break;
    case attribute_host_atomics:
      *value = config.host_atomics ? 1 : 0;
      break;
    case attribute_pageable_memory:
      *value = config.pageable ? 1 : 0;
      break;
    case attribute_cluster_launch:
      *value = config.capability_major >= 9 ? 1 : 0;
      break;
    case attribute_l2_bytes:
      *value = 50 << 20;
      break;
    case attribute_max_threads_per_sm:
      *value = 2048;
      break;
    case attribute_max_threads_per_block:
      *value = 1024;
      break;
    case attribute_max_blocks_per_sm:
      *value = 32;
      break;
    case attribute_registers_per_sm:
      *value = 65536;
      break;
    case attribute_shared_bytes_per_sm:
      *value = 233472;
      break;
    case attribute_shared_bytes_per_block_optin:
      *value = max_shared_bytes;
      break;
    default:
      *value = 1000;
      break;
  }
  return cu_success;
}
FAKE CuResult cuDeviceCanAccessPeer(int* can, CuDevice device, CuDevice peer) {
  if (device == peer) return error_invalid;
  *can = FakeGpu::get().config.peer_access ? 1 : 0;
  return cu_success;
}
FAKE CuResult cuDeviceGetP2PAttribute(int* value, int attribute, CuDevice device, CuDevice peer) {
  if (device == peer || attribute != peer_attribute_atomics) return error_invalid;
  *value = FakeGpu::get().config.peer_atomics ? 1 : 0;
  return cu_success;
}
FAKE CuResult cuDeviceTotalMem_v2(std::size_t* bytes, CuDevice) {
  *bytes = FakeGpu::get().config.memory_bytes;
  return cu_success;
}
FAKE CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  return told(
      386, "cuDevicePrimaryCtxRetain",
      [&] {
        FakeGpu& gpu = FakeGpu::get();
        if (gpu.contexts == 0) {
          const CuResult code = register_context(card_uuid(device));
          if (code != cu_success) return code;
        }
        ++gpu.contexts;
        *context = the_context();
        return cu_success;
      },
      context, device);
}
FAKE CuResult cuDevicePrimaryCtxRelease_v2(CuDevice) {
  const auto lock = locked();
  --FakeGpu::get().contexts;
  return cu_success;
}
FAKE CuResult cuCtxSetCurrent(CuContext context) {
  current_context = context;
  return cu_success;
}
FAKE CuResult cuCtxGetCurrent(CuContext* context) {
  if (!FakeGpu::get().initialised) return 3;
  *context = current_context;
  return cu_success;
}
FAKE CuResult cuCtxGetDevice(CuDevice* device) {
  if (current_context == nullptr) return error_no_context;
  *device = 0;
  return cu_success;
}
FAKE void fake_hold_synchronize(const char* path) {
  synchronized_by = path;
}
FAKE CuResult cuCtxSynchronize() {
  return told(17, "cuCtxSynchronize", [] {
    wait_for_file();
    if (is_dead()) return error_launch_failed;
    return on_card([](FakeGpu& gpu) {
      if (!gpu.captures.empty()) return error_capture_unsupported;
      gpu.unfinished.clear();
      note_wait_for_all(gpu);
      return cu_success;
    });
  });
}
