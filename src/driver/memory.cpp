// Allocates buffers, creates and lends physical memory, and maps it into ranges of addresses.
#include "demarc/driver/memory.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace demarc::cuda {
namespace {

CuAllocationProperties pinned_on(const Gpu& gpu) {
  CuAllocationProperties properties{};
  properties.type = CuAllocationProperties::pinned;
  properties.location = {CuMemoryLocation::device, gpu.handle()};
  return properties;
}

Result<void> needs_virtual_memory(const Gpu& gpu) {
  const DriverApi& api = gpu.api();
  if (api.cuMemCreate != nullptr && api.cuMemMap != nullptr && api.cuMemAddressReserve != nullptr &&
      api.cuMemSetAccess != nullptr && api.cuMemGetAllocationGranularity != nullptr) {
    return {};
  }
  return missing_capability("{}: the driver has no virtual memory management", gpu.name());
}

Result<void> needs_lending(const Gpu& gpu) {
  const DriverApi& api = gpu.api();
  if (api.cuMemExportToShareableHandle != nullptr &&
      api.cuMemImportFromShareableHandle != nullptr &&
      api.cuMemGetAllocationPropertiesFromHandle != nullptr) {
    DEMARC_TRY(const int known, gpu.attribute(attribute_file_descriptors));
    if (known != 0) return {};
  }
  return missing_capability("{}: the driver lends no memory by file descriptors", gpu.name());
}

}  // namespace

Result<DeviceBuffer> DeviceBuffer::allocate(GpuPointer gpu, std::size_t bytes) {
  DEMARC_TRY(const DevicePointer address,
             gpu->ask(fmt::format("cannot allocate {} bytes on {}", bytes, gpu->name()),
                      gpu->api().cuMemAlloc_v2, bytes));
  return DeviceBuffer(std::move(gpu), address, bytes);
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ != 0 && !gpu_->stuck()) gpu_->api().cuMemFree_v2(address_);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : gpu_(std::move(other.gpu_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<void> DeviceBuffer::fill(std::uint8_t value) const {
  DEMARC_CHECK(
      gpu_->check(gpu_->api().cuMemsetD8_v2(address_, value, bytes_), "cannot fill a buffer"));
  return gpu_->check(gpu_->api().cuStreamSynchronize(nullptr), "cannot fill a buffer");
}

Result<void> DeviceBuffer::upload(const void* source, std::size_t bytes, std::size_t offset) const {
  if (offset > bytes_ || bytes > bytes_ - offset) {
    return invalid_input("{} bytes at {} do not fit into a buffer of {}", bytes, offset, bytes_);
  }
  DEMARC_CHECK(gpu_->check(gpu_->api().cuMemcpyHtoD_v2(address_ + offset, source, bytes),
                           "cannot copy to the GPU"));
  // The call may return when the driver holds a copy of its own, and our streams do not wait for
  // the default stream.
  return gpu_->check(gpu_->api().cuStreamSynchronize(nullptr), "cannot copy to the GPU");
}

Result<void> DeviceBuffer::download(void* target, std::size_t bytes, std::size_t offset) const {
  if (offset > bytes_ || bytes > bytes_ - offset) {
    return invalid_input("{} bytes at {} are beyond a buffer of {}", bytes, offset, bytes_);
  }
  return gpu_->check(gpu_->api().cuMemcpyDtoH_v2(target, address_ + offset, bytes),
                     "cannot copy from the GPU");
}

Result<std::size_t> PhysicalMemory::granularity(const Gpu& gpu) {
  DEMARC_CHECK(needs_virtual_memory(gpu));
  const CuAllocationProperties properties = pinned_on(gpu);
  return gpu.ask("cannot read the page size", gpu.api().cuMemGetAllocationGranularity, &properties,
                 0);
}

Result<HostBuffer> HostBuffer::allocate(GpuPointer gpu, std::size_t bytes) {
  const DriverApi& api = gpu->api();
  DEMARC_TRY(void* data, gpu->ask(fmt::format("cannot allocate {} bytes of the host for {}", bytes,
                                              gpu->name()),
                                  api.cuMemHostAlloc, bytes, cu_host_memory_mapped));
  DevicePointer address = 0;
  const CuResult mapped = api.cuMemHostGetDevicePointer_v2(&address, data, 0);
  if (mapped != cu_success) api.cuMemFreeHost(data);
  DEMARC_CHECK(gpu->check(mapped, "cannot map host memory"));
  return HostBuffer(std::move(gpu), data, address, bytes);
}

HostBuffer::~HostBuffer() {
  if (data_ != nullptr && !gpu_->stuck()) gpu_->api().cuMemFreeHost(data_);
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : gpu_(std::move(other.gpu_)),
      data_(std::exchange(other.data_, nullptr)),
      address_(other.address_),
      bytes_(other.bytes_) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(data_, other.data_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<PhysicalMemory> PhysicalMemory::create(GpuPointer gpu, std::size_t bytes, Lending lending) {
  DEMARC_CHECK(needs_virtual_memory(*gpu));
  CuAllocationProperties properties = pinned_on(*gpu);
  if (lending == Lending::by_descriptor) {
    DEMARC_CHECK(needs_lending(*gpu));
    properties.handle_types = CuAllocationProperties::file_descriptor;
  }
  AllocationHandle handle = 0;
  DEMARC_CHECK(gpu->check(
      gpu->api().cuMemCreate(&handle, bytes, &properties, 0),
      fmt::format("cannot allocate {} bytes of physical memory on {}", bytes, gpu->name())));
  return PhysicalMemory(std::move(gpu), handle, bytes);
}

Result<PhysicalMemory> PhysicalMemory::borrow(GpuPointer gpu, const OwnedFile& lent,
                                              std::size_t bytes) {
  DEMARC_CHECK(needs_virtual_memory(*gpu));
  DEMARC_CHECK(needs_lending(*gpu));
  AllocationHandle handle = 0;
  // The driver wants the descriptor in the place of a pointer.
  void* descriptor = reinterpret_cast<void*>(static_cast<std::intptr_t>(lent.get()));  // NOLINT
  DEMARC_CHECK(
      gpu->check(gpu->api().cuMemImportFromShareableHandle(&handle, descriptor,
                                                           CuAllocationProperties::file_descriptor),
                 fmt::format("file descriptor {} is not memory that can be borrowed", lent.get())));
  PhysicalMemory memory(std::move(gpu), handle, bytes);
  const Gpu& card = *memory.gpu_;
  DEMARC_TRY(const CuAllocationProperties found,
             card.ask("cannot look at lent memory",
                      card.api().cuMemGetAllocationPropertiesFromHandle, handle));
  if (found.location.type != CuMemoryLocation::device || found.location.id != card.handle()) {
    return invalid_input("file descriptor {} is not memory of {}", lent.get(), card.name());
  }
  return memory;
}

Result<OwnedFile> PhysicalMemory::lend() const {
  DEMARC_CHECK(needs_lending(*gpu_));
  int descriptor = -1;
  DEMARC_CHECK(gpu_->check(gpu_->api().cuMemExportToShareableHandle(
                               &descriptor, handle_, CuAllocationProperties::file_descriptor, 0),
                           "cannot lend memory"));
  OwnedFile file(descriptor);
  // Whether the driver does so is not documented.
  if (::fcntl(file.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return check_failed("the driver lent file descriptor {}, which is not valid", file.get());
  }
  return file;
}

PhysicalMemory::~PhysicalMemory() {
  if (handle_ != 0 && !gpu_->stuck()) gpu_->api().cuMemRelease(handle_);
}

PhysicalMemory::PhysicalMemory(PhysicalMemory&& other) noexcept
    : gpu_(std::move(other.gpu_)),
      handle_(std::exchange(other.handle_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

PhysicalMemory& PhysicalMemory::operator=(PhysicalMemory&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(handle_, other.handle_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<AddressRange> AddressRange::reserve(GpuPointer gpu, std::size_t bytes, std::size_t alignment,
                                           DevicePointer wanted) {
  DEMARC_CHECK(needs_virtual_memory(*gpu));
  DEMARC_TRY(const DevicePointer address,
             gpu->ask(fmt::format("cannot reserve {} bytes of addresses", bytes),
                      gpu->api().cuMemAddressReserve, bytes, alignment, wanted, 0));
  return AddressRange(std::move(gpu), address, bytes);
}

void AddressRange::release() {
  if (address_ == 0 || gpu_->stuck()) return;
  for (const Piece& piece : mapped_) gpu_->api().cuMemUnmap(address_ + piece.offset, piece.bytes);
  gpu_->api().cuMemAddressFree(address_, bytes_);
}

AddressRange::~AddressRange() {
  release();
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : gpu_(std::move(other.gpu_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::move(other.mapped_)) {}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Result<void> AddressRange::map(std::size_t offset, const PhysicalMemory& memory) {
  if (offset > bytes_ || memory.bytes() > bytes_ - offset) {
    return invalid_input("{} bytes at {} do not fit into a range of {}", memory.bytes(), offset,
                         bytes_);
  }
  DEMARC_CHECK(
      gpu_->check(gpu_->api().cuMemMap(address_ + offset, memory.bytes(), 0, memory.handle(), 0),
                  "cannot map physical memory"));
  mapped_.push_back({offset, memory.bytes()});
  return {};
}

Result<void> AddressRange::unmap(std::size_t offset, std::size_t bytes) {
  const auto piece = std::find_if(mapped_.begin(), mapped_.end(), [&](const Piece& candidate) {
    return candidate.offset == offset && candidate.bytes == bytes;
  });
  if (piece == mapped_.end()) {
    return invalid_input("no mapping of {} bytes begins at offset {}", bytes, offset);
  }
  DEMARC_CHECK(
      gpu_->check(gpu_->api().cuMemUnmap(address_ + offset, bytes), "cannot unmap memory"));
  mapped_.erase(piece);
  return {};
}

Result<void> AddressRange::allow(std::size_t offset, std::size_t bytes, Access access) const {
  return allow_for(*gpu_, offset, bytes, access);
}

Result<void> AddressRange::allow_for(const Gpu& gpu, std::size_t offset, std::size_t bytes,
                                     Access access) const {
  const CuAccess given{{CuMemoryLocation::device, gpu.handle()},
                       access == Access::read ? CuAccess::read : CuAccess::read_write};
  return gpu_->check(gpu_->api().cuMemSetAccess(address_ + offset, bytes, &given, 1),
                     "cannot give access to mapped memory");
}

}  // namespace demarc::cuda
