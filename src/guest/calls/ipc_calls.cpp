// Answers cuIpcGetMemHandle, cuIpcOpenMemHandle and cuIpcCloseMemHandle.
#include "calls/ipc_calls.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calls/own_calls.hpp"
#include "calls/relaxed_capture.hpp"

namespace demarc::cuda {
namespace {

constexpr unsigned lazy_peer_access = 1;  // the only flag; one card needs no access to peers

CuResult code_of(const Error& error) {
  if (error.kind == ErrorKind::invalid_input) return cu_error_invalid_handle;
  return error.kind == ErrorKind::missing_capability ? cu_error_not_supported : cu_error_map_failed;
}

}  // namespace

std::span<const CallRow<IpcCalls>> IpcCalls::rows() {
  static constexpr CallRow<IpcCalls> table[] = {
      {DriverFunction::cuIpcGetMemHandle, &IpcCalls::get},
      {DriverFunction::cuIpcOpenMemHandle, &IpcCalls::open},
      {DriverFunction::cuIpcOpenMemHandle_v2, &IpcCalls::open},
      {DriverFunction::cuIpcCloseMemHandle, &IpcCalls::close},
  };
  return table;
}

CallAnswer IpcCalls::refuse(const DriverCall& call, CuResult code, std::string_view why) const {
  tell_(fmt::format("{} was refused: {}", call.name(), why));
  return code;
}

// As the driver's, the handle is that of the whole allocation, wherever the address lies in it.
CallAnswer IpcCalls::get(const DriverCall& call) {
  const auto [handle, address] = call.parameters<GetIpcHandle>();
  const auto found = memory_.find(address);
  if (handle == nullptr || !found || memory_calls_.is_freed(found->address)) {
    return cu_error_invalid_value;
  }
  if (found->use == WindowMemory::Use::borrowed) {
    return refuse(call, cu_error_invalid_value,
                  "the memory belongs to another process, which has to give the handle");
  }
  if (found->use != WindowMemory::Use::program) {
    return refuse(call, cu_error_not_supported,
                  "processes share only memory of cuMemAlloc and cuMemAllocAsync");
  }
  const color::LinearByte first = memory_.linear(found->address);
  const color::LinearByte range = found->stretch;
  const auto key = lender_.lend(range, first - range);
  if (!key) return refuse(call, code_of(key.error()), key.error().message);
  if (!memory_.note_lent(first)) return cu_error_invalid_value;  // another thread has freed it
  const auto made = packed({*key, first - range, found->bytes});
  if (!made) return refuse(call, cu_error_map_failed, made.error().message);
  *handle = *made;
  return cu_success;
}

void IpcCalls::leave(color::LinearByte range) {
  const bool is_open = std::any_of(opened_.begin(), opened_.end(),
                                   [&](const auto& one) { return one.second.range == range; });
  if (!is_open) lender_.give_back(range);
}

// The server is asked each time, because the memory of a handle may have been freed meanwhile.
CallAnswer IpcCalls::open(const DriverCall& call) {
  const auto [address, bytes, flags] = call.parameters<OpenIpcHandle>();
  if (address == nullptr || (flags & ~lazy_peer_access) != 0) return cu_error_invalid_value;
  const auto handle = unpacked(bytes);
  if (!handle) {
    return refuse(call, cu_error_invalid_handle,
                  "the handle does not come from a process of a tenant");
  }
  const std::lock_guard lock(mutex_);
  const auto range = lender_.borrow(handle->key);
  if (!range) return refuse(call, code_of(range.error()), range.error().message);
  if (memory_.has_stretch(range->first)) {
    return refuse(call, cu_error_invalid_context,
                  "the handle is of this process, which has the memory already");
  }
  if (handle->place >= range->bytes || handle->bytes > range->bytes - handle->place) {
    leave(range->first);
    return refuse(call, cu_error_invalid_handle,
                  fmt::format("the handle names {} bytes at {} of a range of {}", handle->bytes,
                              handle->place, range->bytes));
  }
  *address = memory_.add_borrowed({range->first + handle->place, handle->bytes});
  Opened& opened = opened_[*address];
  opened.range = range->first;
  ++opened.times;
  return cu_success;
}

// Kernels of this process may still use the memory until the card has been waited for.
CallAnswer IpcCalls::close(const DriverCall& call) {
  const DevicePointer address = call.parameters<Free>().address;
  const std::lock_guard lock(mutex_);
  const auto opened = opened_.find(address);
  if (opened == opened_.end()) return cu_error_invalid_value;
  if (opened->second.times == 1) {
    const OwnCalls own;
    const RelaxedStreamCapture relaxed(api_);
    if (const CuResult code = api_.cuCtxSynchronize(); code != cu_success) return code;
    memory_.remove_borrowed(address);
    const color::LinearByte range = opened->second.range;
    opened_.erase(opened);
    leave(range);
    return cu_success;
  }
  --opened->second.times;
  return cu_success;
}

}  // namespace demarc::cuda
