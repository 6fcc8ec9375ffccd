// The "address_map" object of a device description.
#pragma once

#include "demarc/base/json.hpp"
#include "demarc/gpu/address_map.hpp"

namespace demarc::gpu {

[[nodiscard]] Result<AddressMap> address_map_from_json(JsonObject object);
[[nodiscard]] Json address_map_to_json(const AddressMap& map);

}  // namespace demarc::gpu
