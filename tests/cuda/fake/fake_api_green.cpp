// The driver's symbols for green contexts.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "fake_state.hpp"

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {
struct FakeDesc {
  std::vector<std::uint32_t> tpcs;
};
// Whoever asked for them may leave them behind: descriptions nobody takes back in any case, and
// contexts stay where a card is stuck.
std::vector<std::unique_ptr<FakeDesc>> descriptions;
std::map<CuGreenContext, std::unique_ptr<FakeGreen>> contexts;
}  // namespace

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
  // Without a place for them they are counted.
  *groups = result == nullptr ? config.tpcs : std::min(*groups, config.tpcs);
  for (unsigned g = 0; result != nullptr && g < *groups; ++g) {
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
  auto made = std::make_unique<FakeDesc>();
  for (unsigned i = 0; i < count; ++i) made->tpcs.push_back(resources[i].internal[0]);
  *desc = reinterpret_cast<CuResourceDesc>(made.get());
  const auto lock = locked();
  descriptions.push_back(std::move(made));
  return cu_success;
}
FAKE CuResult cuGreenCtxCreate(CuGreenContext* context, CuResourceDesc desc, CuDevice, unsigned) {
  if (FakeGpu::get().callback != nullptr) return cu_error_not_supported;
  const auto lock = locked();
  ++FakeGpu::get().others_alive;
  auto made = std::make_unique<FakeGreen>();
  made->tpcs = reinterpret_cast<FakeDesc*>(desc)->tpcs;
  *context = reinterpret_cast<CuGreenContext>(made.get());
  contexts[*context] = std::move(made);
  return cu_success;
}
FAKE CuResult cuGreenCtxDestroy(CuGreenContext context) {
  const auto lock = locked();
  --FakeGpu::get().others_alive;
  contexts.erase(context);
  return cu_success;
}
FAKE CuResult cuGreenCtxStreamCreate(CuStream* stream, CuGreenContext context, unsigned,
                                     int priority) {
  const auto lock = locked();
  auto* made = new FakeStream;
  std::memset(made->object + FakeGpu::get().config.stream_offset, 0, 20);
  made->green = reinterpret_cast<FakeGreen*>(context);
  made->priority = priority;
  *stream = reinterpret_cast<CuStream>(made);
  return cu_success;
}
FAKE CuResult cuCtxFromGreenCtx(CuContext* context, CuGreenContext green) {
  *context = reinterpret_cast<CuContext>(green);
  return cu_success;
}
