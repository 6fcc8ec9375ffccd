// Mappings of the GPU's memory in stretches of 4 KiB and more, where the driver's own functions map
// 2 MiB at least: made by ioctls of the kernel module nvidia-uvm, as libcuda makes them. What names
// memory there is read off libcuda's own ioctl.
//
// Layouts: kernel-open/nvidia-uvm/uvm_ioctl.h of NVIDIA/open-gpu-kernel-modules, read at 515 to
// 595.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/device/pages.hpp"
#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

// Stretches that are mapped at a time, of all programs on the machine.
inline constexpr std::uint64_t max_mapped_pieces = 524'288;

// Physical memory as nvidia-uvm knows it: one cuMemCreate() or cuMemImport… of this process.
struct MappedMemory {
  std::int32_t control_file = -1;
  std::uint32_t client = 0;
  std::uint32_t memory = 0;
  friend bool operator==(const MappedMemory&, const MappedMemory&) = default;
};

// For the one libcuda of this process; for ever, as that stays loaded.
class PageMappings {
 public:
  // missing_capability, with what would make it work, for versions whose layouts are not known.
  static Result<PageMappings*> install(const DriverApi& api);
  PageMappings(const PageMappings&) = delete;
  PageMappings& operator=(const PageMappings&) = delete;

  // Calls `map`, which has the driver map `bytes` of one piece of physical memory of the card, from
  // its first byte on, at `address` (cuMemSetAccess()), and gives that memory. check_failed unless
  // what the driver asked of the kernel module was just this.
  [[nodiscard]] Result<MappedMemory> record(DevicePointer address, std::uint64_t bytes,
                                            const CuUuid& card,
                                            const std::function<Result<void>()>& map);
  // Takes away what record() saw mapped there; the driver still knows the addresses.
  [[nodiscard]] Result<void> clear(DevicePointer address, std::uint64_t bytes);
  // Maps bytes of the memory from `offset` on at addresses that were cleared. All three are
  // multiples of gpu::smallest_page_bytes. missing_capability where the machine has no more
  // mappings.
  [[nodiscard]] Result<void> map(DevicePointer address, std::uint64_t bytes, std::uint64_t offset,
                                 const MappedMemory& memory);

 private:
  explicit PageMappings(std::size_t processors) : processors_(processors) {}

  std::size_t processors_;  // that one call can name
  std::mutex mutex_;
  int file_ = -1;                // nvidia-uvm, as libcuda has opened it
  std::vector<std::byte> like_;  // what the driver said of the last mapping
};

// The number of processors that one call names in this version of libcuda, "580.159.04"; 0: not
// known.
[[nodiscard]] std::size_t mapped_processors(std::string_view version);

}  // namespace demarc::cuda
