// The driver's symbols for memory: allocations, copies, fills.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fake_told.hpp"

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {
// What lies in it is not known.
CuResult allocate(FakeGpu& gpu, DevicePointer& address, std::size_t bytes) {
  if (bytes == 0) return error_invalid;
  const std::size_t whole = (bytes + 255) / 256 * 256;
  void* memory = std::aligned_alloc(256, whole);
  if (memory == nullptr) return 2;
  std::memset(memory, 0xa5, whole);
  address = reinterpret_cast<DevicePointer>(memory);
  gpu.allocated[address] = bytes;
  return cu_success;
}
CuResult allocate_on_card(DevicePointer& address, std::size_t bytes) {
  return on_card([&](FakeGpu& gpu) {
    return bytes > gpu.config.memory_bytes ? 2 : allocate(gpu, address, bytes);
  });
}
CuResult give_back(DevicePointer address) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  if (gpu.allocated.erase(address) == 0) return error_invalid;
  gpu.of_host.erase(address);
  gpu.unreadable.erase(address);
  std::free(reinterpret_cast<void*>(address));  // NOLINT: device addresses are integers
  return gpu.broken;
}
CuResult copy(DevicePointer target, DevicePointer source, std::size_t bytes, CuStream stream) {
  return on_card([&](FakeGpu& gpu) {
    if (!gpu.fits(target, bytes) || !gpu.fits(source, bytes)) return error_invalid;
    if (gpu.read_only.contains(target / fake_page * fake_page)) return error_invalid;
    if (gpu.unreadable.contains(source)) return error_invalid;
    if (gpu.is_written(source, bytes, stream)) return error_launch_failed;
    std::memcpy(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), bytes);
    return cu_success;
  });
}
CuResult copy_rows(const CuCopy2d* copy, CuStream stream) {
  if (stream_of(stream)->capturing()) return cu_error_not_supported;
  for (const unsigned type : {copy->source_type, copy->target_type}) {
    if (type == cu_memory_array) return error_invalid;
  }
  return on_card([&](FakeGpu& gpu) {
    const char* from = copy->source_type == cu_memory_host
                           ? static_cast<const char*>(copy->source_host)
                           : reinterpret_cast<const char*>(copy->source_device);  // NOLINT
    char* to = copy->target_type == cu_memory_host
                   ? static_cast<char*>(copy->target_host)
                   : reinterpret_cast<char*>(copy->target_device);  // NOLINT
    if (copy->width_bytes > copy->source_pitch || copy->width_bytes > copy->target_pitch) return 1;
    for (std::size_t row = 0; row < copy->height; ++row) {
      const auto source = reinterpret_cast<DevicePointer>(from + row * copy->source_pitch);
      const auto target = reinterpret_cast<DevicePointer>(to + row * copy->target_pitch);
      if (!gpu.fits(source, copy->width_bytes) || !gpu.fits(target, copy->width_bytes)) return 1;
      if (gpu.is_written(source, copy->width_bytes, stream)) return error_launch_failed;
      std::memcpy(to + row * copy->target_pitch, from + row * copy->source_pitch,
                  copy->width_bytes);
    }
    ++gpu.copies;
    return cu_success;
  });
}
template <class Value>
CuResult fill(DevicePointer target, Value value, std::size_t count) {
  return on_card([&](FakeGpu& gpu) {
    if (!gpu.fits(target, count * sizeof value)) return error_invalid;
    std::fill_n(reinterpret_cast<Value*>(target), count, value);  // NOLINT: an address
    return cu_success;
  });
}
void count_copy(bool to_card) {
  const auto lock = locked();
  ++FakeGpu::get().async_copies[to_card ? 1 : 0];
}
}  // namespace

FAKE CuResult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return told(
      242, "cuMemGetInfo_v2",
      [&] {
        const FakeConfig& config = FakeGpu::get().config;
        *free = config.free_bytes;
        *total = config.memory_bytes;
        return cu_success;
      },
      free, total);
}
FAKE CuResult cuMemAlloc_v2(DevicePointer* address, std::size_t bytes) {
  return told(
      243, "cuMemAlloc_v2", [&] { return allocate_on_card(*address, bytes); }, address, bytes);
}
FAKE CuResult cuMemFree_v2(DevicePointer address) {
  return told(
      245, "cuMemFree_v2", [&] { return give_back(address); }, address);
}
// Copies from its beginning fail from now on.
FAKE void fake_make_unreadable(DevicePointer address) {
  const auto lock = locked();
  FakeGpu::get().unreadable.insert(address);
}
// The stand-in's streams are never behind when memory changes hands.
FAKE CuResult cuMemAllocAsync(DevicePointer* address, std::size_t bytes, CuStream stream) {
  return told(
      598, "cuMemAllocAsync", [&] { return allocate_on_card(*address, bytes); }, address, bytes,
      stream);
}
FAKE CuResult cuMemFreeAsync(DevicePointer address, CuStream stream) {
  return told(
      600, "cuMemFreeAsync", [&] { return give_back(address); }, address, stream);
}
// For memory that was allocated the kind, and where it begins and ends: ordinary host memory
// is not known.
FAKE CuResult cuPointerGetAttribute(void* value, int attribute, DevicePointer address) {
  return told(
      310, "cuPointerGetAttribute",
      [&] {
        const FakeGpu& gpu = FakeGpu::get();
        const auto above = gpu.allocated.upper_bound(address);
        if (above == gpu.allocated.begin()) return error_invalid;
        const auto& [begin, bytes] = *std::prev(above);
        if (address - begin >= bytes) return error_invalid;
        constexpr int kind = 2;
        constexpr int range_start = 11;
        constexpr int range_size = 12;
        if (attribute == kind) {
          const auto& where = gpu.of_host.contains(begin) ? cu_memory_host : cu_memory_device;
          std::memcpy(value, &where, sizeof where);
        } else if (attribute == range_start) {
          std::memcpy(value, &begin, sizeof begin);
        } else if (attribute == range_size) {
          std::memcpy(value, &bytes, sizeof bytes);
        } else {
          return error_invalid;
        }
        return cu_success;
      },
      value, attribute, address);
}
FAKE CuResult cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  const struct {
    void** address;
    std::size_t bytes;
    unsigned flags;
  } arguments{address, bytes, flags};
  return called(39, "cuMemHostAlloc", &arguments, [&] {
    return on_card([&](FakeGpu& gpu) {
      DevicePointer made = 0;
      const CuResult code = allocate(gpu, made, bytes);
      *address = reinterpret_cast<void*>(made);  // NOLINT: device addresses are integers
      if (code == cu_success) gpu.of_host.insert(made);
      return code;
    });
  });
}
FAKE CuResult cuMemFreeHost(void* address) {
  return give_back(reinterpret_cast<DevicePointer>(address));
}
FAKE CuResult cuMemHostGetDevicePointer_v2(DevicePointer* device, void* host, unsigned flags) {
  if (flags != 0) return error_invalid;
  *device = reinterpret_cast<DevicePointer>(host);
  return cu_success;
}
FAKE CuResult cuMemcpyHtoD_v2(DevicePointer target, const void* source, std::size_t bytes) {
  return told(
      276, "cuMemcpyHtoD_v2",
      [&] { return copy(target, reinterpret_cast<DevicePointer>(source), bytes, nullptr); }, target,
      source, bytes);
}
FAKE CuResult cuMemcpyDtoH_v2(void* target, DevicePointer source, std::size_t bytes) {
  return told(
      278, "cuMemcpyDtoH_v2",
      [&] { return copy(reinterpret_cast<DevicePointer>(target), source, bytes, nullptr); }, target,
      source, bytes);
}
FAKE CuResult cuMemcpyDtoD_v2(DevicePointer target, DevicePointer source, std::size_t bytes) {
  return told(
      280, "cuMemcpyDtoD_v2", [&] { return copy(target, source, bytes, nullptr); }, target, source,
      bytes);
}
// Copies and fills do not become nodes of graphs.
FAKE CuResult cuMemcpyHtoDAsync_v2(DevicePointer target, const void* source, std::size_t bytes,
                                   CuStream stream) {
  return told(
      277, "cuMemcpyHtoDAsync_v2",
      [&] {
        if (stream_of(stream)->capturing()) return cu_error_not_supported;
        count_copy(true);
        return copy(target, reinterpret_cast<DevicePointer>(source), bytes, stream);
      },
      target, source, bytes, stream);
}
FAKE CuResult cuMemcpyDtoHAsync_v2(void* target, DevicePointer source, std::size_t bytes,
                                   CuStream stream) {
  return told(
      279, "cuMemcpyDtoHAsync_v2",
      [&] {
        if (stream_of(stream)->capturing()) return cu_error_not_supported;
        count_copy(false);
        return copy(reinterpret_cast<DevicePointer>(target), source, bytes, stream);
      },
      target, source, bytes, stream);
}
FAKE CuResult cuMemcpyDtoDAsync_v2(DevicePointer target, DevicePointer source, std::size_t bytes,
                                   CuStream stream) {
  return told(
      281, "cuMemcpyDtoDAsync_v2",
      [&] {
        if (stream_of(stream)->capturing()) return cu_error_not_supported;
        return copy(target, source, bytes, stream);
      },
      target, source, bytes, stream);
}
FAKE CuResult cuMemcpy2DAsync_v2(const CuCopy2d* copy, CuStream stream) {
  return told(
      289, "cuMemcpy2DAsync_v2", [&] { return copy_rows(copy, stream); }, copy, stream);
}
FAKE CuResult cuMemsetD8_v2(DevicePointer target, unsigned char value, std::size_t count) {
  return told(
      249, "cuMemsetD8_v2", [&] { return fill(target, value, count); }, target, value, count);
}
FAKE CuResult cuMemsetD8Async(DevicePointer target, unsigned char value, std::size_t count,
                              CuStream stream) {
  return told(
      216, "cuMemsetD8Async",
      [&] {
        if (stream_of(stream)->capturing()) return cu_error_not_supported;
        return fill(target, value, count);
      },
      target, value, count, stream);
}
FAKE CuResult cuMemsetD32Async(DevicePointer target, unsigned value, std::size_t count,
                               CuStream stream) {
  return told(
      220, "cuMemsetD32Async",
      [&] {
        if (stream_of(stream)->capturing()) return cu_error_not_supported;
        if (FakeGpu::get().config.fills_launch) launch_fill(stream_of(stream));
        return fill(target, value, count);
      },
      target, value, count, stream);
}
// The stand-in itself shares no memory with other processes.
FAKE CuResult cuIpcGetMemHandle(CuIpcHandle* handle, DevicePointer address) {
  return told(
      328, "cuIpcGetMemHandle", [] { return cu_error_not_supported; }, handle, address);
}
FAKE CuResult cuIpcOpenMemHandle_v2(DevicePointer* address, CuIpcHandle handle, unsigned flags) {
  return told(
      567, "cuIpcOpenMemHandle_v2", [] { return cu_error_not_supported; }, address, handle, flags);
}
FAKE CuResult cuIpcCloseMemHandle(DevicePointer address) {
  return told(
      330, "cuIpcCloseMemHandle", [] { return cu_error_not_supported; }, address);
}
