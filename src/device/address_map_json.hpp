// The "address_map" object of a device description.
#pragma once

#include "demarc/base/json.hpp"
#include "demarc/device/address_map.hpp"

namespace demarc::gpu {

// A list of masks written as text; a missing key is an empty hash.
[[nodiscard]] Result<LinearHash> hash_from_json(JsonObject& object, std::string_view key);
[[nodiscard]] Json hash_to_json(const LinearHash& hash);

[[nodiscard]] Result<AddressMap> address_map_from_json(JsonObject object);
[[nodiscard]] Json address_map_to_json(const AddressMap& map);

}  // namespace demarc::gpu
