// The section "memory_system" of a description.
#pragma once

#include "demarc/base/json.hpp"
#include "demarc/device/memory_system.hpp"

namespace demarc::gpu {

[[nodiscard]] Result<MemorySystem> memory_system_from_json(JsonObject object);
[[nodiscard]] Json memory_system_to_json(const MemorySystem& system);

}  // namespace demarc::gpu
