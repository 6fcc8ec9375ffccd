// The driver's symbols for virtual memory: ranges of addresses, physical memory, what lends it to
// other processes.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "fake_told.hpp"

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

// What stands behind the bytes of memory in the file that lends it: the number of the physical page
// goes with it, so that every process sees the same colours.
struct LentTrailer {
  std::uint64_t magic = 0x6d656d20656b6166;
  std::uint64_t physical = 0;
  int card = 0;
  int unused = 0;
};

bool pinned_on_the_card(const CuAllocationProperties& properties) {
  return properties.type == CuAllocationProperties::pinned &&
         properties.location.type == CuMemoryLocation::device;
}

void* at(DevicePointer address) {
  return reinterpret_cast<void*>(address);  // NOLINT: device addresses are integers
}

// -1 where the machine has no room for it.
int lent_file(const FakeMemory& memory) {
  const int file = ::memfd_create("demarc-fake-memory", MFD_CLOEXEC);
  const LentTrailer trailer{.physical = memory.physical, .card = memory.card};
  const auto end = static_cast<off_t>(memory.bytes);
  if (file >= 0 && ::pwrite(file, &trailer, sizeof trailer, end) != sizeof trailer) {
    ::close(file);
    return -1;
  }
  return file;
}

// Aligned as it must be and no better. 0: there is none so long.
DevicePointer free_range(std::size_t bytes, std::size_t alignment) {
  const std::size_t step = std::max<std::size_t>(alignment, fake_page);
  void* room = ::mmap(nullptr, bytes + 2 * step, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return 0;
  const auto begin = reinterpret_cast<DevicePointer>(room);
  DevicePointer first = (begin + step - 1) / step * step;
  if (first / step % 2 == 0) first += step;
  if (first != begin) ::munmap(room, first - begin);
  if (first != begin + 2 * step) ::munmap(at(first + bytes), begin + 2 * step - first);
  return first;
}

// Released memory stays as long as it is mapped.
void drop_unless_mapped(FakeGpu& gpu, AllocationHandle handle) {
  const auto memory = gpu.memory.find(handle);
  const auto maps = [&](const auto& one) { return one.second == handle; };
  if (!memory->second.released || std::any_of(gpu.by_kernel.begin(), gpu.by_kernel.end(), maps)) {
    return;
  }
  if (memory->second.file >= 0) ::close(memory->second.file);
  gpu.memory.erase(memory);
}

CuResult create(AllocationHandle* handle, std::size_t bytes,
                const CuAllocationProperties* properties, unsigned long long flags) {
  if (bytes == 0 || bytes % fake_page != 0 || flags != 0) return error_invalid;
  if (!pinned_on_the_card(*properties)) return error_invalid;
  FakeGpu& gpu = FakeGpu::get();
  FakeMemory memory{++gpu.pages_made, bytes, properties->location.id};
  if (properties->handle_types == CuAllocationProperties::file_descriptor) {
    memory.file = lent_file(memory);
    if (memory.file < 0) return 2;
  } else if (properties->handle_types != 0) {
    return error_invalid;
  }
  ++gpu.others_alive;
  *handle = ++gpu.handles_made;
  gpu.memory[*handle] = memory;
  return cu_success;
}

}  // namespace

FAKE CuResult cuMemGetAllocationGranularity(std::size_t* bytes,
                                            const CuAllocationProperties* properties, int option) {
  if (option != 0 || !pinned_on_the_card(*properties)) return error_invalid;  // the least one
  *bytes = fake_page;
  return cu_success;
}
// Where it is wanted if that is free, else anywhere. Flags that the driver has none for are
// refused, as it does.
FAKE CuResult cuMemAddressReserve(DevicePointer* address, std::size_t bytes, std::size_t alignment,
                                  DevicePointer wanted, unsigned long long flags) {
  if (bytes == 0 || bytes % fake_page != 0 || flags != 0) return error_invalid;
  *address = 0;
  if (wanted != 0 && wanted % fake_page == 0) {
    void* range = ::mmap(at(wanted), bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (range == at(wanted)) {
      *address = wanted;
    } else if (range != MAP_FAILED) {
      ::munmap(range, bytes);  // a kernel that knows no such flag takes it for a wish
    }
  }
  if (*address == 0) *address = free_range(bytes, alignment);
  if (*address == 0) return 2;
  const auto lock = locked();
  ++FakeGpu::get().others_alive;
  return cu_success;
}
// The driver refuses what is still mapped.
FAKE CuResult cuMemAddressFree(DevicePointer address, std::size_t bytes) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  const auto first = gpu.mapped.lower_bound(address);
  if (first != gpu.mapped.end() && first->first < address + bytes) return error_invalid;
  --gpu.others_alive;
  ::munmap(at(address), bytes);
  return cu_success;
}
FAKE CuResult cuMemCreate(AllocationHandle* handle, std::size_t bytes,
                          const CuAllocationProperties* properties, unsigned long long flags) {
  return told(
      549, "cuMemCreate", [&] { return create(handle, bytes, properties, flags); }, handle, bytes,
      properties, flags);
}
FAKE CuResult cuMemRelease(AllocationHandle handle) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  const auto memory = gpu.memory.find(handle);
  if (memory == gpu.memory.end() || memory->second.released) return error_invalid;
  if (gpu.config.release_us != 0) ::usleep(gpu.config.release_us);
  memory->second.released = true;
  drop_unless_mapped(gpu, handle);
  --gpu.others_alive;
  return cu_success;
}
FAKE CuResult cuMemMap(DevicePointer address, std::size_t bytes, std::size_t offset,
                       AllocationHandle handle, unsigned long long flags) {
  if (offset != 0 || flags != 0) return error_invalid;
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  const auto memory = gpu.memory.find(handle);
  if (memory == gpu.memory.end() || memory->second.released || bytes > memory->second.bytes) {
    return error_invalid;
  }
  if (gpu.mapped.contains(address)) return error_invalid;
  gpu.mapped[address] = memory->second.physical;
  if (memory->second.file >= 0) gpu.by_kernel[address] = handle;
  return cu_success;
}
FAKE CuResult cuMemUnmap(DevicePointer address, std::size_t bytes) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  if (gpu.mapped.erase(address) == 0) return error_invalid;
  if (const auto lent = gpu.by_kernel.extract(address)) drop_unless_mapped(gpu, lent.mapped());
  unmap_pieces(gpu, address, bytes);
  for (auto* pages : {&gpu.accessible, &gpu.read_only}) {
    pages->erase(pages->lower_bound(address), pages->lower_bound(address + bytes));
  }
  ::mmap(at(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
  return cu_success;
}
FAKE CuResult cuMemSetAccess(DevicePointer address, std::size_t bytes, const CuAccess* access,
                             std::size_t count) {
  if (count != 1 || access->location.type != CuMemoryLocation::device) return error_invalid;
  const bool writes = access->flags == CuAccess::read_write;
  if (!writes && access->flags != CuAccess::read) return error_invalid;
  return on_card([&](FakeGpu& gpu) {
    if (!gpu.mapped.contains(address)) return error_invalid;
    for (std::size_t done = 0; done < bytes; done += fake_page) {
      const auto lent = gpu.by_kernel.find(address + done);
      if (lent == gpu.by_kernel.end()) {
        const int rights = PROT_READ | (writes ? PROT_WRITE : 0);
        if (::mprotect(at(address + done), fake_page, rights) != 0) return 1;
      } else if (const CuResult code =
                     map_by_kernel(address + done, fake_page, lent->second, writes);
                 code != cu_success) {
        return code;
      }
      gpu.accessible.insert(address + done);
      if (writes) {
        gpu.read_only.erase(address + done);
      } else {
        gpu.read_only.insert(address + done);
      }
    }
    return cu_success;
  });
}
FAKE CuResult cuMemExportToShareableHandle(void* shareable, AllocationHandle handle, int type,
                                           unsigned long long flags) {
  if (type != CuAllocationProperties::file_descriptor || flags != 0) return error_invalid;
  const auto lock = locked();
  const auto& all = FakeGpu::get().memory;
  const auto memory = all.find(handle);
  if (memory == all.end() || memory->second.file < 0) return error_invalid;
  const int file = ::dup(memory->second.file);
  if (file < 0) return 2;
  *static_cast<int*>(shareable) = file;
  return cu_success;
}
FAKE CuResult cuMemImportFromShareableHandle(AllocationHandle* handle, void* shareable, int type) {
  if (type != CuAllocationProperties::file_descriptor) return error_invalid;
  const int lent = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
  struct stat found {};
  LentTrailer trailer;
  if (::fstat(lent, &found) != 0 || found.st_size <= static_cast<off_t>(sizeof trailer)) {
    return error_invalid;
  }
  const off_t end = found.st_size - static_cast<off_t>(sizeof trailer);
  if (::pread(lent, &trailer, sizeof trailer, end) != sizeof trailer ||
      trailer.magic != LentTrailer{}.magic) {
    return error_invalid;
  }
  const int file = ::dup(lent);
  if (file < 0) return 2;
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  ++gpu.others_alive;
  *handle = ++gpu.handles_made;
  gpu.memory[*handle] = {trailer.physical, static_cast<std::size_t>(end), trailer.card, file};
  return cu_success;
}
FAKE CuResult cuMemGetAllocationPropertiesFromHandle(CuAllocationProperties* properties,
                                                     AllocationHandle handle) {
  const auto lock = locked();
  const auto& all = FakeGpu::get().memory;
  const auto memory = all.find(handle);
  if (memory == all.end()) return error_invalid;
  *properties = {};
  properties->type = CuAllocationProperties::pinned;
  properties->location = {CuMemoryLocation::device, memory->second.card};
  if (memory->second.file >= 0) {
    properties->handle_types = CuAllocationProperties::file_descriptor;
  }
  return cu_success;
}
