// The driver's symbols for virtual memory, graphs and green contexts.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "fake_state.hpp"

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {
constexpr std::size_t fake_page = 2 << 20;

std::scoped_lock<std::recursive_mutex> lock_fake() {
  return std::scoped_lock(FakeGpu::get().mutex);
}

struct FakeDesc {
  std::vector<std::uint32_t> tpcs;
};
}  // namespace

FAKE CuResult cuMemGetAllocationGranularity(std::size_t* bytes, const CuAllocationProperties*,
                                            int) {
  *bytes = fake_page;
  return cu_success;
}
FAKE CuResult cuMemAddressReserve(DevicePointer* address, std::size_t bytes, std::size_t,
                                  DevicePointer, unsigned long long) {
  void* range = ::mmap(nullptr, bytes + fake_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (range == MAP_FAILED) return 2;
  *address = (reinterpret_cast<DevicePointer>(range) + fake_page - 1) / fake_page * fake_page;
  return cu_success;
}
FAKE CuResult cuMemAddressFree(DevicePointer address, std::size_t bytes) {
  ::munmap(reinterpret_cast<void*>(address), bytes);  // NOLINT: device addresses are integers
  return cu_success;
}
FAKE CuResult cuMemCreate(AllocationHandle* handle, std::size_t bytes,
                          const CuAllocationProperties*, unsigned long long) {
  static AllocationHandle next = 0;
  if (bytes == 0 || bytes % fake_page != 0) return 1;
  *handle = ++next;
  return cu_success;
}
FAKE CuResult cuMemRelease(AllocationHandle) {
  return cu_success;
}
FAKE CuResult cuMemMap(DevicePointer address, std::size_t, std::size_t, AllocationHandle handle,
                       unsigned long long) {
  const auto lock = lock_fake();
  FakeGpu::get().mapped[address] = handle;
  return cu_success;
}
FAKE CuResult cuMemUnmap(DevicePointer address, std::size_t bytes) {
  const auto lock = lock_fake();
  FakeGpu::get().mapped.erase(address);
  ::mprotect(reinterpret_cast<void*>(address), bytes, PROT_NONE);  // NOLINT
  return cu_success;
}
FAKE CuResult cuMemSetAccess(DevicePointer address, std::size_t bytes, const CuAccess*,
                             std::size_t) {
  const int done = ::mprotect(reinterpret_cast<void*>(address), bytes,  // NOLINT
                              PROT_READ | PROT_WRITE);
  return done == 0 ? cu_success : 1;
}

FAKE CuResult cuStreamBeginCapture_v2(CuStream stream, int) {
  const auto lock = lock_fake();
  stream_of(stream)->capturing = true;
  return cu_success;
}
FAKE CuResult cuStreamIsCapturing(CuStream stream, int* status) {
  const auto lock = lock_fake();
  *status = stream_of(stream)->capturing ? 1 : 0;
  return cu_success;
}
FAKE CuResult cuStreamSetAttribute(CuStream stream, int attribute,
                                   const CuLaunchAttributeValue* value) {
  const auto lock = lock_fake();
  const FakeConfig& config = FakeGpu::get().config;
  if (attribute != CuLaunchAttribute::sync_domain_map) return cu_error_invalid_value;
  if (value->domains[0] >= config.sync_domains || value->domains[1] >= config.sync_domains) {
    return cu_error_invalid_value;
  }
  if (!config.forgets_domains) stream_of(stream)->domains = {value->domains[0], value->domains[1]};
  return cu_success;
}
FAKE CuResult cuStreamGetAttribute(CuStream stream, int attribute, CuLaunchAttributeValue* value) {
  const auto lock = lock_fake();
  if (attribute != CuLaunchAttribute::sync_domain_map) return cu_error_invalid_value;
  std::copy_n(stream_of(stream)->domains.begin(), 2, value->domains);
  return cu_success;
}
FAKE CuResult cuStreamEndCapture(CuStream stream, CuGraph* graph) {
  const auto lock = lock_fake();
  auto* made = new FakeGraph;
  made->nodes = std::move(stream_of(stream)->captured);
  stream_of(stream)->captured.clear();
  stream_of(stream)->capturing = false;
  *graph = reinterpret_cast<CuGraph>(made);
  return cu_success;
}
FAKE CuResult cuGraphInstantiateWithFlags(CuGraphExec* executable, CuGraph graph,
                                          unsigned long long) {
  auto* made = new FakeGraphExec;
  made->nodes = reinterpret_cast<FakeGraph*>(graph)->nodes;
  *executable = reinterpret_cast<CuGraphExec>(made);
  return cu_success;
}
FAKE CuResult cuGraphLaunch(CuGraphExec executable, CuStream stream) {
  const auto lock = lock_fake();
  return launch_graph(stream_of(stream), *reinterpret_cast<FakeGraphExec*>(executable));
}
FAKE CuResult cuGraphExecDestroy(CuGraphExec executable) {
  const auto lock = lock_fake();
  function_callback(FakeGpu::get(), 516, &executable, false);
  delete reinterpret_cast<FakeGraphExec*>(executable);
  return cu_success;
}
FAKE CuResult cuGraphDestroy(CuGraph graph) {
  delete reinterpret_cast<FakeGraph*>(graph);
  return cu_success;
}

FAKE CuResult cuDeviceGetDevResource(CuDevice, CuDeviceResource* resource, int) {
  *resource = {};
  resource->type = CuDeviceResource::sm_type;
  resource->sm.sm_count = FakeGpu::get().sms();
  resource->sm.min_partition = 8;
  resource->sm.coscheduled_alignment = 8;
  return cu_success;
}
// Groups of one TPC, in an order that is not the logical one.
FAKE CuResult cuDevSmResourceSplitByCount(CuDeviceResource* result, unsigned* groups,
                                          const CuDeviceResource*, CuDeviceResource* remaining,
                                          unsigned flags, unsigned min_count) {
  const FakeConfig& config = FakeGpu::get().config;
  if (flags != cu_split_ignore_coscheduling || min_count != 2) return 801;
  *groups = std::min(*groups, config.tpcs);
  for (unsigned g = 0; g < *groups; ++g) {
    result[g] = {};
    result[g].type = CuDeviceResource::sm_type;
    result[g].sm.sm_count = config.sms_per_tpc;
    result[g].internal[0] = static_cast<unsigned char>(g * 5 % config.tpcs);
  }
  if (remaining != nullptr) *remaining = {};
  return cu_success;
}
FAKE CuResult cuDevResourceGenerateDesc(CuResourceDesc* desc, CuDeviceResource* resources,
                                        unsigned count) {
  auto* made = new FakeDesc;
  for (unsigned i = 0; i < count; ++i) made->tpcs.push_back(resources[i].internal[0]);
  *desc = reinterpret_cast<CuResourceDesc>(made);
  return cu_success;
}
FAKE CuResult cuGreenCtxCreate(CuGreenContext* context, CuResourceDesc desc, CuDevice, unsigned) {
  std::unique_ptr<FakeDesc> taken(reinterpret_cast<FakeDesc*>(desc));
  if (FakeGpu::get().callback != nullptr) return cu_error_not_supported;
  auto* made = new FakeGreen;
  made->tpcs = taken->tpcs;
  *context = reinterpret_cast<CuGreenContext>(made);
  return cu_success;
}
FAKE CuResult cuGreenCtxDestroy(CuGreenContext context) {
  delete reinterpret_cast<FakeGreen*>(context);
  return cu_success;
}
FAKE CuResult cuGreenCtxStreamCreate(CuStream* stream, CuGreenContext context, unsigned, int) {
  const auto lock = lock_fake();
  auto* made = new FakeStream;
  std::memset(made->object + FakeGpu::get().config.stream_offset, 0, 20);
  made->green = reinterpret_cast<FakeGreen*>(context);
  *stream = reinterpret_cast<CuStream>(made);
  return cu_success;
}
FAKE CuResult cuCtxFromGreenCtx(CuContext* context, CuGreenContext green) {
  *context = reinterpret_cast<CuContext>(green);
  return cu_success;
}
