// Answers the functions of the driver that reserve addresses, create memory and map it there.
#include "calls/mapping_calls.hpp"
#include "demarc/base/rounding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calls/own_calls.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t granule = std::uint64_t{2} << 20U;

// For an allocation whose bytes were given back with its range.
constexpr DevicePointer nowhere = 1;

bool is_whole(std::uint64_t bytes) {
  return bytes != 0 && bytes % granule == 0;
}

}  // namespace

std::span<const CallRow<MappingCalls>> MappingCalls::rows() {
  static constexpr CallRow<MappingCalls> table[] = {
      {DriverFunction::cuMemAddressReserve, &MappingCalls::reserve},
      {DriverFunction::cuMemAddressFree, &MappingCalls::give_back},
      {DriverFunction::cuMemCreate, &MappingCalls::create},
      {DriverFunction::cuMemRelease, &MappingCalls::release},
      {DriverFunction::cuMemMap, &MappingCalls::map},
      {DriverFunction::cuMemUnmap, &MappingCalls::unmap},
      {DriverFunction::cuMemSetAccess, &MappingCalls::set_access},
      {DriverFunction::cuMemGetAccess, &MappingCalls::get_access},
  };
  return table;
}

CallAnswer MappingCalls::refuse(const DriverCall& call, std::string_view why) const {
  tell_(fmt::format("{} was refused: {}", call.name(), why));
  return cu_error_not_supported;
}

CallAnswer MappingCalls::reserve(const DriverCall& call) {
  const auto [address, bytes, asked, wanted, flags] = call.parameters<ReserveAddresses>();
  const std::uint64_t alignment = std::max<std::uint64_t>(asked, granule);
  if (address == nullptr || !is_whole(bytes) || (alignment & (alignment - 1)) != 0 || flags != 0) {
    return cu_error_invalid_value;
  }
  const std::uint64_t whole = bytes + alignment;
  const auto block =
      whole < bytes ? Result<DevicePointer>(invalid_input("too much")) : memory_.allocate(whole);
  if (!block) {
    tell_(
        fmt::format("{}: a reserved range takes its bytes at once, and {} bytes are not free (in "
                    "PyTorch: leave out expandable_segments)",
                    call.name(), bytes));
    return cu_error_out_of_memory;
  }
  *address = round_up(*block, alignment);
  const std::lock_guard lock(mutex_);
  ranges_.emplace(*address, Range{bytes, *block});
  return cu_success;
}

CallAnswer MappingCalls::give_back(const DriverCall& call) {
  const auto [address, bytes] = call.parameters<MappedRange>();
  {
    const std::lock_guard lock(mutex_);
    const auto range = ranges_.find(address);
    if (range == ranges_.end() || range->second.bytes != bytes || touches_mapped(address, bytes)) {
      return cu_error_invalid_value;
    }
  }
  const OwnCalls own;
  // Kernels of it may still run, and others may be given the bytes.
  if (const CuResult code = api_.cuCtxSynchronize(); code != cu_success) return code;
  const std::lock_guard lock(mutex_);
  const auto range = ranges_.extract(address);
  if (range.empty()) return cu_error_invalid_value;
  memory_.release(range.mapped().block);
  for (auto& [handle, allocation] : allocations_) {
    if (allocation.place - address < bytes) allocation.place = nowhere;
  }
  return cu_success;
}

CallAnswer MappingCalls::create(const DriverCall& call) {
  const auto [handle, bytes, wanted] = call.parameters<CreateMemory>();
  if (handle == nullptr || wanted == nullptr || !is_whole(bytes)) return cu_error_invalid_value;
  if (wanted->type != CuAllocationProperties::pinned ||
      wanted->location.type != CuMemoryLocation::device) {
    return refuse(call, "only memory of the card has a colour");
  }
  if (wanted->handle_types != 0)
    return refuse(call, "processes share coloured memory only by cuIpcGetMemHandle");
  const std::lock_guard lock(mutex_);
  *handle = ++last_;
  allocations_.emplace(*handle, Allocation{bytes});
  return cu_success;
}

CallAnswer MappingCalls::release(const DriverCall& call) {
  const Handle handle = call.parameters<ReleaseMemory>().handle;
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end() || found->second.released) return cu_error_invalid_value;
  if (found->second.mapped) {
    found->second.released = true;
  } else {
    allocations_.erase(found);
  }
  return cu_success;
}

bool MappingCalls::is_reserved(DevicePointer address, std::uint64_t bytes) const {
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) return false;
  --range;
  const std::uint64_t offset = address - range->first;
  return offset < range->second.bytes && bytes <= range->second.bytes - offset;
}

bool MappingCalls::touches_mapped(DevicePointer address, std::uint64_t bytes) const {
  return std::any_of(mapped_.begin(), mapped_.end(), [&](const auto& entry) {
    const auto [first, handle] = entry;
    return first - address < bytes || address - first < allocations_.at(handle).bytes;
  });
}

bool MappingCalls::is_mapped(DevicePointer address, std::uint64_t bytes) const {
  if (bytes > ~address) return false;  // beyond the last address
  const DevicePointer end = address + bytes;
  auto entry = mapped_.upper_bound(address);
  if (entry != mapped_.begin()) --entry;
  for (; entry != mapped_.end() && entry->first <= address; ++entry) {
    address = std::max(address, entry->first + allocations_.at(entry->second).bytes);
  }
  return address >= end;
}

CallAnswer MappingCalls::map(const DriverCall& call) {
  const auto [address, bytes, offset, handle] = call.parameters<MapMemory>();
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end() || found->second.released || !is_whole(bytes) ||
      address % granule != 0 || !is_reserved(address, bytes) || touches_mapped(address, bytes)) {
    return cu_error_invalid_value;
  }
  Allocation& allocation = found->second;
  if (offset != 0 || bytes != allocation.bytes) {
    return refuse(call, "a part of an allocation cannot be mapped");
  }
  // Where it is mapped now that place was refused before.
  if (allocation.place != 0 && allocation.place != address) {
    return refuse(call, "coloured memory has one address and cannot be mapped at a second one");
  }
  allocation.place = address;
  allocation.mapped = true;
  mapped_.emplace(address, found->first);
  return cu_success;
}

CallAnswer MappingCalls::unmap(const DriverCall& call) {
  const auto [address, bytes] = call.parameters<MappedRange>();
  const std::lock_guard lock(mutex_);
  if (bytes == 0 || !is_mapped(address, bytes)) return cu_error_invalid_value;
  const auto first = mapped_.lower_bound(address);
  const auto end = mapped_.lower_bound(address + bytes);
  std::uint64_t whole = 0;
  for (auto one = first; one != end; ++one) whole += allocations_.at(one->second).bytes;
  if (whole != bytes || first->first != address) return cu_error_invalid_value;
  for (auto one = first; one != end; one = mapped_.erase(one)) {
    const auto allocation = allocations_.find(one->second);
    allocation->second.mapped = false;
    if (allocation->second.released) allocations_.erase(allocation);
  }
  return cu_success;
}

CallAnswer MappingCalls::set_access(const DriverCall& call) {
  const auto [address, bytes, wanted, count] = call.parameters<SetAccess>();
  const std::lock_guard lock(mutex_);
  if (wanted == nullptr || bytes == 0 || !is_mapped(address, bytes)) return cu_error_invalid_value;
  const bool plain = std::all_of(wanted, wanted + count, [](const CuAccess& one) {
    return one.location.type == CuMemoryLocation::device && one.flags == CuAccess::read_write;
  });
  if (!plain) return refuse(call, "only its own card can read and write coloured memory");
  return cu_success;
}

CallAnswer MappingCalls::get_access(const DriverCall& call) {
  const auto [flags, location, address] = call.parameters<GetAccess>();
  const std::lock_guard lock(mutex_);
  if (flags == nullptr || !is_mapped(address, 1)) return cu_error_invalid_value;
  *flags = CuAccess::read_write;
  return cu_success;
}

}  // namespace demarc::cuda
