// Device memory: plain buffers, and the physical pages and address ranges that coloured memory is
// built from.
#pragma once

#include <span>
#include <vector>

#include "demarc/base/owned_file.hpp"
#include "demarc/driver/stream.hpp"

namespace demarc::cuda {

class DeviceBuffer {
 public:
  static Result<DeviceBuffer> allocate(GpuPointer gpu, std::size_t bytes);
  template <class T>
  static Result<DeviceBuffer> allocate(GpuPointer gpu, std::size_t count) {
    return allocate(std::move(gpu), count * sizeof(T));
  }
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  [[nodiscard]] DevicePointer address() const { return address_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] Result<void> fill(std::uint8_t value) const;
  // Copies that wait until they are done. The span must fit into the buffer.
  [[nodiscard]] Result<void> upload(const void* source, std::size_t bytes,
                                    std::size_t offset = 0) const;
  [[nodiscard]] Result<void> download(void* target, std::size_t bytes,
                                      std::size_t offset = 0) const;
  template <class T>
  [[nodiscard]] Result<std::vector<T>> read(std::size_t count, std::size_t offset = 0) const {
    std::vector<T> values(count);
    DEMARC_CHECK(download(values.data(), count * sizeof(T), offset));
    return values;
  }

 private:
  DeviceBuffer(GpuPointer gpu, DevicePointer address, std::size_t bytes)
      : gpu_(std::move(gpu)), address_(address), bytes_(bytes) {}
  GpuPointer gpu_;
  DevicePointer address_ = 0;
  std::size_t bytes_ = 0;
};

// Host memory that kernels reach over the bus: its address there is address().
class HostBuffer {
 public:
  static Result<HostBuffer> allocate(GpuPointer gpu, std::size_t bytes);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;

  [[nodiscard]] DevicePointer address() const { return address_; }
  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(data_), bytes_};
  }

 private:
  HostBuffer(GpuPointer gpu, void* data, DevicePointer address, std::size_t bytes)
      : gpu_(std::move(gpu)), data_(data), address_(address), bytes_(bytes) {}
  GpuPointer gpu_;
  void* data_ = nullptr;
  DevicePointer address_ = 0;
  std::size_t bytes_ = 0;
};

// Whether other processes may map a piece of physical memory that this one has made.
enum class Lending {
  none,
  by_descriptor,  // processes that have a file descriptor of it may
};

// A piece of physical device memory (cuMemCreate); it has no address until it is mapped.
class PhysicalMemory {
 public:
  // `bytes` is a multiple of granularity(). missing_capability if it is to be lent and the driver
  // knows no file descriptors.
  static Result<PhysicalMemory> create(GpuPointer gpu, std::size_t bytes,
                                       Lending lending = Lending::none);
  // Takes `bytes` that another process has lent; the descriptor may be closed afterwards.
  // invalid_input if it is not memory of this card.
  static Result<PhysicalMemory> borrow(GpuPointer gpu, const OwnedFile& lent, std::size_t bytes);
  static Result<std::size_t> granularity(const Gpu& gpu);  // 2 MiB on the cards seen
  ~PhysicalMemory();
  PhysicalMemory(PhysicalMemory&& other) noexcept;
  PhysicalMemory& operator=(PhysicalMemory&& other) noexcept;

  // A descriptor for borrow(), closed by exec(). The memory stays as long as any process has a
  // descriptor or a mapping of it. An error unless it was created to be lent.
  [[nodiscard]] Result<OwnedFile> lend() const;

  [[nodiscard]] AllocationHandle handle() const { return handle_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  PhysicalMemory(GpuPointer gpu, AllocationHandle handle, std::size_t bytes)
      : gpu_(std::move(gpu)), handle_(handle), bytes_(bytes) {}
  GpuPointer gpu_;
  AllocationHandle handle_ = 0;
  std::size_t bytes_ = 0;
};

// A range of virtual addresses that physical memory is mapped into. Unmaps and frees on
// destruction; the PhysicalMemory may go first.
class AddressRange {
 public:
  // Reserves at `wanted` if that is free, else, or if it is 0, at a place that the driver chooses.
  static Result<AddressRange> reserve(GpuPointer gpu, std::size_t bytes, std::size_t alignment = 0,
                                      DevicePointer wanted = 0);
  ~AddressRange();
  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&& other) noexcept;

  [[nodiscard]] DevicePointer address() const { return address_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Maps all of `memory` at `offset`, without access.
  [[nodiscard]] Result<void> map(std::size_t offset, const PhysicalMemory& memory);
  [[nodiscard]] Result<void> unmap(std::size_t offset, std::size_t bytes);
  // Access for this card to a mapped part.
  enum class Access { read, read_write };
  [[nodiscard]] Result<void> allow(std::size_t offset, std::size_t bytes,
                                   Access access = Access::read_write) const;
  // The same for another card.
  [[nodiscard]] Result<void> allow_for(const Gpu& gpu, std::size_t offset, std::size_t bytes,
                                       Access access = Access::read_write) const;

 private:
  struct Piece {
    std::size_t offset, bytes;
  };
  AddressRange(GpuPointer gpu, DevicePointer address, std::size_t bytes)
      : gpu_(std::move(gpu)), address_(address), bytes_(bytes) {}
  void release();
  GpuPointer gpu_;
  DevicePointer address_ = 0;
  std::size_t bytes_ = 0;
  std::vector<Piece> mapped_;
};

}  // namespace demarc::cuda
