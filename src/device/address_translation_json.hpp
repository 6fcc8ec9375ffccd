// The section "address_translation" of a device description.
#pragma once

#include "demarc/base/json.hpp"
#include "demarc/device/address_translation.hpp"

namespace demarc::gpu {

[[nodiscard]] Result<AddressTranslation> address_translation_from_json(JsonObject object);
[[nodiscard]] Json address_translation_to_json(const AddressTranslation& translation);

}  // namespace demarc::gpu
