// The card that a UUID names, among those that this process sees.
#pragma once

#include <memory>
#include <string>

#include "demarc/driver/gpu.hpp"

namespace demarc::cuda {

// missing_capability where it is not visible here.
inline Result<std::uint32_t> index_of_uuid(const std::shared_ptr<const Driver>& driver,
                                           const std::string& uuid) {
  DEMARC_TRY(const std::uint32_t count, driver->device_count());
  for (std::uint32_t index = 0; index < count; ++index) {
    DEMARC_TRY(const GpuPointer gpu, Gpu::find(driver, index));
    if (gpu->uuid() == uuid) return index;
  }
  return missing_capability("the program's GPU {} is not visible here", uuid);
}

}  // namespace demarc::cuda
