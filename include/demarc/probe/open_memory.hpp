// The memory that --device names.
#pragma once

#include <memory>
#include <string_view>

#include "demarc/device/device.hpp"
#include "demarc/probe/timed_memory.hpp"

namespace demarc::probe {

struct OpenedMemory {
  std::unique_ptr<TimedMemory> memory;
  gpu::Device device;  // description of the rest of the GPU
};

// "planted:NAME", "sim:NAME" (simulated; the description must have an address map and a memory
// system) or "cuda:N". `bytes` of a real card are taken.
[[nodiscard]] Result<OpenedMemory> open_memory(std::string_view device, std::uint64_t bytes,
                                               std::uint64_t seed);

}  // namespace demarc::probe
