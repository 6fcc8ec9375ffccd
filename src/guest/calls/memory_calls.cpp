// Answers the functions of the driver that allocate, free and describe memory.
#include "calls/memory_calls.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "calls/own_calls.hpp"
#include "calls/relaxed_capture.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t pitch_step = 512;

// CUpointer_attribute, those that are told.
enum PointerAttribute : int {
  of_context = 1,
  of_memory_type = 2,
  of_device_pointer = 3,
  of_host_pointer = 4,
  of_buffer_id = 7,
  of_managed = 8,
  of_device = 9,
  of_ipc = 10,  // whether cuIpcGetMemHandle gives a handle
  of_range_start = 11,
  of_range_bytes = 12,
  of_pool = 17,
};

template <class T>
CuResult tell_value(void* target, T value) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a handle, which is a pointer
  std::memcpy(target, &value, sizeof value);
  return cu_success;
}

}  // namespace

std::span<const CallRow<MemoryCalls>> MemoryCalls::rows() {
  static constexpr CallRow<MemoryCalls> table[] = {
      {DriverFunction::cuMemAlloc_v2, &MemoryCalls::alloc},
      {DriverFunction::cuMemAllocPitch_v2, &MemoryCalls::alloc_pitch},
      {DriverFunction::cuMemAllocAsync, &MemoryCalls::alloc},
      {DriverFunction::cuMemAllocFromPoolAsync, &MemoryCalls::alloc},
      {DriverFunction::cuMemFree_v2, &MemoryCalls::free},
      {DriverFunction::cuMemFreeAsync, &MemoryCalls::free_async},
      {DriverFunction::cuMemGetInfo_v2, &MemoryCalls::info},
      {DriverFunction::cuCtxSetLimit, &MemoryCalls::set_limit},
      {DriverFunction::cuMemGetAddressRange_v2, &MemoryCalls::address_range},
      {DriverFunction::cuPointerGetAttribute, &MemoryCalls::attribute},
      {DriverFunction::cuPointerGetAttributes, &MemoryCalls::attributes},
      {DriverFunction::cuPointerSetAttribute, &MemoryCalls::set_attribute},
      {DriverFunction::cuDevicePrimaryCtxReset, &MemoryCalls::reset},
  };
  return table;
}

// Gives back what streams have come by; all of it where it is waited for. What cannot be told
// stays.
void MemoryCalls::reap(bool waiting) {
  const OwnCalls own;
  const RelaxedStreamCapture relaxed(api_);
  const std::lock_guard lock(mutex_);
  std::erase_if(pending_, [&](const Pending& one) {
    if (has_come(one, waiting) != cu_success) return false;
    if (one.event != nullptr) api_.cuEventDestroy_v2(one.event);
    memory_.free(one.address);
    return true;
  });
}

CuResult MemoryCalls::has_come(const Pending& one, bool waiting) const {
  if (one.event == nullptr) return waiting ? api_.cuCtxSynchronize() : cu_error_not_ready;
  return waiting ? api_.cuEventSynchronize(one.event) : api_.cuEventQuery(one.event);
}

// Freed a second time it would be taken from who has it next.
bool MemoryCalls::is_freed(DevicePointer address) {
  const std::lock_guard lock(mutex_);
  return is_pending(address);
}

bool MemoryCalls::is_pending(DevicePointer address) const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [&](const Pending& one) { return one.address == address; });
}

// cuIpcCloseMemHandle gives it back.
bool MemoryCalls::is_borrowed(DevicePointer address) const {
  const auto found = memory_.find(address);
  return found && found->use == WindowMemory::Use::borrowed;
}

Result<DevicePointer> MemoryCalls::allocate(std::uint64_t bytes, WindowMemory::Use use) {
  reap(false);
  auto made = memory_.allocate(bytes, use);
  if (made) return made;
  reap(true);
  made = memory_.allocate(bytes, use);
  if (!made) record_.note_refused_bytes(bytes);
  return made;
}

CuResult MemoryCalls::give(DevicePointer* address, std::uint64_t bytes) {
  if (address == nullptr || bytes == 0) return cu_error_invalid_value;
  const auto made = allocate(bytes, WindowMemory::Use::program);
  if (!made) return cu_error_out_of_memory;
  *address = *made;
  return cu_success;
}

// What is given is free already, so that the stream of an asynchronous call need not be waited for.
CallAnswer MemoryCalls::alloc(const DriverCall& call) {
  const auto [address, bytes] = call.parameters<Allocate>();
  return give(address, bytes);
}

CallAnswer MemoryCalls::alloc_pitch(const DriverCall& call) {
  const auto [address, pitch, width, height] = call.parameters<AllocatePitch>();
  if (pitch == nullptr || width == 0 || width > memory_.bytes()) return cu_error_invalid_value;
  const std::uint64_t whole = round_up(width, pitch_step);
  if (height > memory_.bytes() / whole) return cu_error_out_of_memory;
  const CuResult code = give(address, whole * height);
  if (code == cu_success) *pitch = whole;
  return code;
}

// As the driver's: not before what is under way on the card has ended.
CallAnswer MemoryCalls::free(const DriverCall& call) {
  const DevicePointer address = call.parameters<Free>().address;
  if (!memory_.contains(address)) return std::nullopt;
  if (is_borrowed(address)) return cu_error_invalid_value;
  {
    const std::lock_guard lock(mutex_);
    if (is_pending(address)) return cu_error_invalid_value;
  }
  {
    const OwnCalls own;
    const RelaxedStreamCapture relaxed(api_);
    const CuResult code = api_.cuCtxSynchronize();
    if (code == cu_error_capturing) return free_later(address);
    if (code != cu_success) return code;
  }
  return memory_.free(address) ? cu_success : cu_error_invalid_value;
}

// Whatever stream is captured: what is under way ends, though the host cannot wait now.
CuResult MemoryCalls::free_later(DevicePointer address) {
  const auto found = memory_.find(address);
  if (!found || found->address != address) return cu_error_invalid_value;
  const std::lock_guard lock(mutex_);
  if (is_pending(address)) return cu_error_invalid_value;
  pending_.push_back({address, nullptr});
  return cu_success;
}

// What is freed while a graph is captured stays, because the graph may be launched again.
CallAnswer MemoryCalls::free_async(const DriverCall& call) {
  const auto given = call.parameters<FreeAsync>();
  const DevicePointer address = given.address;
  if (!memory_.contains(address)) return std::nullopt;
  const auto found = memory_.find(address);
  if (!found || found->address != address || is_borrowed(address)) return cu_error_invalid_value;
  const CuStream stream = stream_of(call, given);
  const OwnCalls own;
  const std::lock_guard lock(mutex_);
  if (is_pending(address)) return cu_error_invalid_value;
  int capturing = 0;
  if (api_.cuStreamIsCapturing != nullptr) {
    const CuResult code = api_.cuStreamIsCapturing(stream, &capturing);
    if (code != cu_success) return code;
  }
  if (capturing != 0) return cu_success;
  Pending pending{address, nullptr};
  CuResult code = api_.cuEventCreate(&pending.event, cu_event_disable_timing);
  if (code == cu_success) code = api_.cuEventRecord(pending.event, stream);
  if (code != cu_success) return code;
  pending_.push_back(pending);
  return cu_success;
}

CallAnswer MemoryCalls::info(const DriverCall& call) {
  reap(false);
  const auto [free, total] = call.parameters<GetMemoryInfo>();
  if (free != nullptr) *free = memory_.bytes() - memory_.usage().used_bytes;
  if (total != nullptr) *total = memory_.bytes();
  return cu_success;
}

// What the L2 sets aside for a program it takes from all tenants.
CallAnswer MemoryCalls::set_limit(const DriverCall& call) {
  constexpr int persisting_l2_bytes = 6;  // CU_LIMIT_PERSISTING_L2_CACHE_SIZE
  if (call.parameters<SetLimit>().limit == persisting_l2_bytes) return cu_error_unsupported_limit;
  return std::nullopt;
}

CallAnswer MemoryCalls::address_range(const DriverCall& call) {
  const auto [base, bytes, address] = call.parameters<GetAddressRange>();
  if (!memory_.contains(address)) return std::nullopt;
  const auto found = memory_.find(address);
  if (!found) return cu_error_not_found;
  if (base != nullptr) *base = found->address;
  if (bytes != nullptr) *bytes = found->bytes;
  return cu_success;
}

CuResult MemoryCalls::tell(int attribute, DevicePointer address, void* value) const {
  const auto found = memory_.find(address);
  if (!found || value == nullptr) return cu_error_invalid_value;
  const OwnCalls own;
  CuContext context = nullptr;
  CuDevice device = 0;
  switch (attribute) {
    case of_context:
      if (const CuResult code = api_.cuCtxGetCurrent(&context); code != cu_success) return code;
      return tell_value(value, context);
    case of_memory_type:
      return tell_value(value, cu_memory_device);
    case of_device_pointer:
      return tell_value(value, address);
    case of_buffer_id:
      return tell_value(value, found->address);
    case of_managed:
      return tell_value(value, 0U);
    case of_device:
      if (const CuResult code = api_.cuCtxGetDevice(&device); code != cu_success) return code;
      return tell_value(value, device);
    case of_ipc:
      return tell_value(value, found->use == WindowMemory::Use::program ? 1U : 0U);
    case of_range_start:
      return tell_value(value, found->address);
    case of_range_bytes:
      return tell_value(value, std::size_t{found->bytes});
    case of_pool:
      return tell_value(value, static_cast<void*>(nullptr));
    default:
      return cu_error_invalid_value;
  }
}

CallAnswer MemoryCalls::attribute(const DriverCall& call) {
  const auto [value, attribute, address] = call.parameters<AttributeOfPointer>();
  if (!memory_.contains(address)) return std::nullopt;
  return tell(attribute, address, value);
}

// What an address does not have is null here, and no error.
CallAnswer MemoryCalls::attributes(const DriverCall& call) {
  const auto [count, attributes, values, address] = call.parameters<GetPointerAttributes>();
  if (!memory_.contains(address)) return std::nullopt;
  if (attributes == nullptr || values == nullptr) return cu_error_invalid_value;
  for (unsigned i = 0; i < count; ++i) {
    const CuResult code = attributes[i] == of_host_pointer && values[i] != nullptr
                              ? tell_value(values[i], static_cast<void*>(nullptr))
                              : tell(attributes[i], address, values[i]);
    if (code != cu_success) return code;
  }
  return cu_success;
}

CallAnswer MemoryCalls::set_attribute(const DriverCall& call) {
  if (!memory_.contains(call.parameters<AttributeOfPointer>().address)) return std::nullopt;
  return cu_error_not_supported;
}

// The context stays, with what the program has in it: a reset would free the table of the colours,
// and kernels would read addresses from whatever lies there next.
CallAnswer MemoryCalls::reset(const DriverCall&) {
  constexpr CuResult no_context = 201;  // is current: there is nothing to wait for
  const OwnCalls own;
  const CuResult code = api_.cuCtxSynchronize();
  return code == no_context ? cu_success : code;
}

}  // namespace demarc::cuda
