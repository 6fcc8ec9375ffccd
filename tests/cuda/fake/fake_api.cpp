// The driver's symbols, as far as Demarc calls them.
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "fake_state.hpp"

namespace demarc::fake {

FakeStream::FakeStream() : storage(4096, 0) {
  object = storage.data();
  // Fields of other meaning, so that not every place reads as an unused mask.
  for (std::size_t i = 0; i < storage.size(); i += 4) {
    if (i % 64 < 24) storage[i] = static_cast<char>(i / 64 + 1);
  }
}

FakeGpu& FakeGpu::get() {
  static FakeGpu gpu;
  return gpu;
}

void FakeGpu::call_back(int domain, int id, const void* params) {
  if (callback != nullptr && enabled.count({domain, id}) != 0) {
    callback(callback_user, domain, id, params);
  }
}

namespace {

using cuda::AllocationHandle;
using cuda::CuAccess;
using cuda::CuAllocationProperties;
using cuda::CuCopy2d;
using cuda::CuDevice;
using cuda::CuDeviceResource;
using cuda::CuEvent;
using cuda::CuFunction;
using cuda::CuGraph;
using cuda::CuGraphExec;
using cuda::CuGreenContext;
using cuda::CuLaunchConfig;
using cuda::CuModule;
using cuda::CuResourceDesc;
using cuda::CuUuid;

constexpr CuResult error_invalid = 1;
constexpr CuResult error_not_found = 500;
constexpr CuResult error_launch_failed = 719;

std::scoped_lock<std::recursive_mutex> locked() {
  return std::scoped_lock(FakeGpu::get().mutex);
}

CuContext the_context() {
  static int context = 0;
  return reinterpret_cast<CuContext>(&context);
}

void clear_stream_field(FakeStream& stream) {
  std::memset(stream.object + FakeGpu::get().config.stream_offset, 0, 20);
}

CuResult subscribe(std::uint32_t* handle, Callback callback, void* user) {
  FakeGpu& gpu = FakeGpu::get();
  if (gpu.callback != nullptr) return 210;
  gpu.callback = callback;
  gpu.callback_user = user;
  *handle = 1;
  return cuda::cu_success;
}

CuResult enable(std::uint32_t on, std::uint32_t, int domain, int id) {
  FakeGpu& gpu = FakeGpu::get();
  if (on != 0) {
    gpu.enabled.insert({domain, id});
  } else {
    gpu.enabled.erase({domain, id});
  }
  return cuda::cu_success;
}

const void* callback_table() {
  static const void* table[] = {reinterpret_cast<const void*>(std::uintptr_t{96}),
                                nullptr,
                                nullptr,
                                reinterpret_cast<const void*>(&subscribe),
                                nullptr,
                                nullptr,
                                reinterpret_cast<const void*>(&enable)};
  return table;
}

// "version=14020,offset=604,client=c3"
void configure_from_environment(FakeConfig& config) {
  const char* text = std::getenv("DEMARC_FAKE_GPU");
  if (text == nullptr) return;
  unsigned client = 0;
  const int read = std::sscanf(text, "version=%d,offset=%u,client=%x", &config.cuda_version,
                               &config.stream_offset, &client);
  if (read < 3) return;
  std::snprintf(config.name, sizeof config.name, "NVIDIA H100 80GB HBM3");
  config.client = client;
  config.virtual_sms = client != 0;
}

CuResult submit(FakeLaunch launch, CuStream handle, int function_id) {
  FakeGpu& gpu = FakeGpu::get();
  if (gpu.fail_next != cuda::cu_success) return std::exchange(gpu.fail_next, cuda::cu_success);
  FakeStream* stream = stream_of(handle);
  take_stream_mask(stream, launch);
  if (stream->capturing) {
    stream->captured.push_back(std::move(launch));
    return cuda::cu_success;
  }
  return launch_now(stream, handle, launch, function_id);
}

}  // namespace

FakeStream* stream_of(CuStream stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return &FakeGpu::get().default_stream;
  return reinterpret_cast<FakeStream*>(stream);
}

}  // namespace demarc::fake

using namespace demarc::fake;  // NOLINT: the exported symbols below are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE void fake_configure(const FakeConfig* config) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  gpu.config = *config;
  for (FakeStream* stream : gpu.destroyed) delete stream;
  gpu.destroyed.clear();
  gpu.launches = 0;
  gpu.streams_made = 0;
  gpu.copies = 0;
  gpu.hanging = 0;
  gpu.fail_next = cu_success;
  gpu.default_stream.hangs = false;
  clear_stream_field(gpu.default_stream);
}
FAKE std::uint64_t fake_launch_count() {
  return FakeGpu::get().launches;
}
FAKE std::uint64_t fake_hanging_launches() {
  return FakeGpu::get().hanging;
}
FAKE std::uint64_t fake_copy_count() {
  return FakeGpu::get().copies;
}
FAKE void fake_fail_next_launch(int code) {
  FakeGpu::get().fail_next = code;
}

FAKE CuResult cuInit(unsigned) {
  FakeGpu& gpu = FakeGpu::get();
  if (gpu.initialised) return cu_success;
  gpu.initialised = true;
  configure_from_environment(gpu.config);
  clear_stream_field(gpu.default_stream);
  // Tools are injected as the real driver does it.
  if (const char* path = std::getenv("CUDA_INJECTION64_PATH")) {
    if (void* library = ::dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
      const auto entry = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
      if (entry != nullptr) entry();
    }
  }
  return cu_success;
}
FAKE CuResult cuDriverGetVersion(int* version) {
  if (!FakeGpu::get().initialised) configure_from_environment(FakeGpu::get().config);
  *version = FakeGpu::get().config.cuda_version;
  return cu_success;
}
FAKE CuResult cuGetErrorName(CuResult code, const char** text) {
  *text = code == cu_success ? "CUDA_SUCCESS" : "CUDA_ERROR_FAKE";
  return cu_success;
}
FAKE CuResult cuGetErrorString(CuResult, const char** text) {
  *text = "as the stand-in says";
  return cu_success;
}
FAKE CuResult cuGetExportTable(const void** table, const CuUuid*) {
  if (!FakeGpu::get().config.callback) return error_not_found;
  *table = callback_table();
  return cu_success;
}
FAKE CuResult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(visible_devices().size());
  return cu_success;
}
FAKE CuResult cuDeviceGet(CuDevice* device, int ordinal) {
  const auto& visible = visible_devices();
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
      *value = config.client == 0 || config.client_hidden
                   ? static_cast<int>(FakeGpu::get().sms())
                   : std::popcount(config.client) * static_cast<int>(config.sms_per_tpc);
      break;
    case attribute_capability_major:
      *value = config.capability_major;
      break;
    case attribute_capability_minor:
      *value = config.capability_minor;
      break;
    case attribute_mps_enabled:
      if (config.mps_attribute == 2) return error_invalid;
      *value = config.mps_attribute >= 0 ? config.mps_attribute : (config.virtual_sms ? 1 : 0);
      break;
    case attribute_sync_domains:
      if (config.sync_domains < 2) return error_invalid;
      *value = static_cast<int>(config.sync_domains);
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
      *value = 232448;
      break;
    default:
      *value = 1000;
      break;
  }
  return cu_success;
}
FAKE CuResult cuDeviceTotalMem_v2(std::size_t* bytes, CuDevice) {
  *bytes = FakeGpu::get().config.memory_bytes;
  return cu_success;
}
FAKE CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  if (gpu.contexts == 0) {
    if (const CuResult code = register_context(card_uuid(device)); code != cu_success) return code;
  }
  ++gpu.contexts;
  *context = the_context();
  return cu_success;
}
FAKE CuResult cuDevicePrimaryCtxRelease_v2(CuDevice) {
  const auto lock = locked();
  --FakeGpu::get().contexts;
  return cu_success;
}
FAKE CuResult cuCtxSetCurrent(CuContext context) {
  FakeGpu::get().current = context;
  return cu_success;
}
FAKE CuResult cuCtxGetCurrent(CuContext* context) {
  if (!FakeGpu::get().initialised) return 3;
  *context = FakeGpu::get().current;
  return cu_success;
}
FAKE CuResult cuCtxGetDevice(CuDevice* device) {
  *device = 0;
  return cu_success;
}
FAKE CuResult cuCtxSynchronize() {
  return cu_success;
}
FAKE CuResult cuModuleLoadData(CuModule* module, const void* image) {
  auto made = std::make_unique<FakeModule>();
  const std::string text = static_cast<const char*>(image);
  for (std::size_t at = text.find(".entry "); at != std::string::npos;
       at = text.find(".entry ", at + 1)) {
    const std::size_t begin = at + 7;
    const std::size_t end = text.find_first_of("( \n", begin);
    auto function = std::make_unique<FakeFunction>();
    function->name = text.substr(begin, end - begin);
    made->functions[function->name] = std::move(function);
  }
  *module = reinterpret_cast<CuModule>(made.get());
  const auto lock = locked();
  FakeGpu::get().modules[*module] = std::move(made);
  return cu_success;
}
FAKE CuResult cuModuleUnload(CuModule module) {
  const auto lock = locked();
  FakeGpu::get().modules.erase(module);
  return cu_success;
}
FAKE CuResult cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  auto& functions = reinterpret_cast<FakeModule*>(module)->functions;
  const auto found = functions.find(name);
  if (found == functions.end()) return error_not_found;
  *function = reinterpret_cast<CuFunction>(found->second.get());
  return cu_success;
}
FAKE CuResult cuModuleGetGlobal_v2(DevicePointer*, std::size_t*, CuModule, const char*) {
  return error_not_found;
}
FAKE CuResult cuFuncGetAttribute(int* value, int, CuFunction) {
  *value = 0;
  return cu_success;
}
FAKE CuResult cuFuncSetAttribute(CuFunction, int, int) {
  return cu_success;
}
FAKE CuResult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CuFunction, int,
                                                          std::size_t) {
  *blocks = 1;
  return cu_success;
}
FAKE CuResult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30;
  return cu_success;
}
FAKE CuResult cuMemAlloc_v2(DevicePointer* address, std::size_t bytes) {
  *address = reinterpret_cast<DevicePointer>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *address == 0 ? 2 : cu_success;
}
FAKE CuResult cuMemFree_v2(DevicePointer address) {
  std::free(reinterpret_cast<void*>(address));  // NOLINT: device addresses are integers
  return cu_success;
}
FAKE CuResult cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  *address = std::malloc(bytes);
  return cu_success;
}
FAKE CuResult cuMemFreeHost(void* address) {
  std::free(address);
  return cu_success;
}
FAKE CuResult cuMemHostGetDevicePointer_v2(DevicePointer* device, void* host, unsigned) {
  *device = reinterpret_cast<DevicePointer>(host);
  return cu_success;
}
FAKE CuResult cuMemcpyHtoD_v2(DevicePointer target, const void* source, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(target), source, bytes);
  return cu_success;
}
FAKE CuResult cuMemcpyDtoH_v2(void* target, DevicePointer source, std::size_t bytes) {
  std::memcpy(target, reinterpret_cast<const void*>(source), bytes);
  return cu_success;
}
FAKE CuResult cuMemcpyDtoD_v2(DevicePointer target, DevicePointer source, std::size_t bytes) {
  return cuMemcpyHtoD_v2(target, reinterpret_cast<const void*>(source), bytes);
}
FAKE CuResult cuMemcpyHtoDAsync_v2(DevicePointer target, const void* source, std::size_t bytes,
                                   CuStream) {
  return cuMemcpyHtoD_v2(target, source, bytes);
}
FAKE CuResult cuMemcpyDtoHAsync_v2(void* target, DevicePointer source, std::size_t bytes,
                                   CuStream) {
  return cuMemcpyDtoH_v2(target, source, bytes);
}
FAKE CuResult cuMemcpyDtoDAsync_v2(DevicePointer target, DevicePointer source, std::size_t bytes,
                                   CuStream) {
  return cuMemcpyDtoD_v2(target, source, bytes);
}
FAKE CuResult cuMemcpy2DAsync_v2(const CuCopy2d* copy, CuStream) {
  const char* from = copy->source_type == cu_memory_host
                         ? static_cast<const char*>(copy->source_host)
                         : reinterpret_cast<const char*>(copy->source_device);  // NOLINT
  char* to = copy->target_type == cu_memory_host
                 ? static_cast<char*>(copy->target_host)
                 : reinterpret_cast<char*>(copy->target_device);  // NOLINT
  if (copy->width_bytes > copy->source_pitch || copy->width_bytes > copy->target_pitch) return 1;
  for (std::size_t row = 0; row < copy->height; ++row) {
    std::memcpy(to + row * copy->target_pitch, from + row * copy->source_pitch, copy->width_bytes);
  }
  ++FakeGpu::get().copies;
  return cu_success;
}
FAKE CuResult cuMemsetD8_v2(DevicePointer target, unsigned char value, std::size_t count) {
  std::memset(reinterpret_cast<void*>(target), value, count);
  return cu_success;
}
FAKE CuResult cuMemsetD8Async(DevicePointer target, unsigned char value, std::size_t count,
                              CuStream) {
  return cuMemsetD8_v2(target, value, count);
}
FAKE CuResult cuMemsetD32Async(DevicePointer target, unsigned value, std::size_t count, CuStream) {
  std::fill_n(reinterpret_cast<unsigned*>(target), count, value);
  return cu_success;
}
FAKE CuResult cuStreamCreateWithPriority(CuStream* stream, unsigned, int) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  FakeStream* made = nullptr;
  if (gpu.destroyed.empty()) {
    made = new FakeStream;
    made->number = gpu.streams_made++;
    clear_stream_field(*made);
  } else {
    made = gpu.destroyed.back();
    gpu.destroyed.pop_back();
  }
  gpu.streams.insert(made);
  *stream = reinterpret_cast<CuStream>(made);
  return cu_success;
}
FAKE CuResult cuStreamDestroy_v2(CuStream stream) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  function_callback(gpu, 326, &stream, false);
  FakeStream* gone = stream_of(stream);
  gpu.streams.erase(gone);
  gone->hangs = false;
  gone->captured.clear();
  gone->green = nullptr;
  gpu.destroyed.push_back(gone);
  function_callback(gpu, 326, &stream, true);
  return cu_success;
}
FAKE CuResult cuStreamQuery(CuStream stream) {
  const auto lock = locked();
  return stream_of(stream)->hangs ? cu_error_not_ready : cu_success;
}
FAKE CuResult cuStreamSynchronize(CuStream stream) {
  return cuStreamQuery(stream) == cu_success ? cu_success : error_launch_failed;
}
FAKE CuResult cuStreamWaitEvent(CuStream, CuEvent, unsigned) {
  return cu_success;
}
FAKE CuResult cuEventCreate(CuEvent* event, unsigned) {
  *event = reinterpret_cast<CuEvent>(new int(0));
  return cu_success;
}
FAKE CuResult cuEventDestroy_v2(CuEvent event) {
  delete reinterpret_cast<int*>(event);
  return cu_success;
}
FAKE CuResult cuEventRecord(CuEvent, CuStream) {
  return cu_success;
}
FAKE CuResult cuEventQuery(CuEvent) {
  return cu_success;
}
FAKE CuResult cuEventSynchronize(CuEvent) {
  return cu_success;
}
FAKE CuResult cuEventElapsedTime(float* milliseconds, CuEvent, CuEvent) {
  *milliseconds = 1;
  return cu_success;
}
FAKE CuResult cuLaunchKernel(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             CuStream stream, void** arguments, void**) {
  const auto lock = locked();
  if (block_x * block_y * block_z > 1024) return error_invalid;
  FakeLaunch launch;
  launch.function = reinterpret_cast<FakeFunction*>(function);
  const unsigned grid[3] = {grid_x, grid_y, grid_z};
  const unsigned block[3] = {block_x, block_y, block_z};
  std::copy(grid, grid + 3, launch.grid);
  std::copy(block, block + 3, launch.block);
  launch.shared = shared;
  launch.arguments = copy_arguments(*launch.function, arguments);
  return submit(std::move(launch), stream, 307);
}
FAKE CuResult cuLaunchKernelEx(const CuLaunchConfig* config, CuFunction function, void** arguments,
                               void**) {
  const auto lock = locked();
  FakeLaunch launch;
  launch.function = reinterpret_cast<FakeFunction*>(function);
  std::copy(config->grid, config->grid + 3, launch.grid);
  std::copy(config->block, config->block + 3, launch.block);
  launch.shared = config->shared_bytes;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    if (config->attributes[i].id == CuLaunchAttribute::cluster_dimension) {
      launch.cluster = config->attributes[i].value.cluster[0];
    }
  }
  launch.arguments = copy_arguments(*launch.function, arguments);
  return submit(std::move(launch), config->stream, 652);
}
