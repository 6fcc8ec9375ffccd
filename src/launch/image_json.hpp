// Textures and surfaces in launch files.
#pragma once

#include <string>

#include "demarc/base/json.hpp"
#include "demarc/launch/image.hpp"
#include "expression.hpp"

namespace demarc::gpu {

// All that `object` says but for its buffer, which the caller has asked it for.
[[nodiscard]] Result<Image> read_texture(JsonObject& object, const Variables& variables);
[[nodiscard]] Result<Image> read_surface(JsonObject& object, const Variables& variables);

// {"texture": {…}} or {"surface": {…}}; `buffer`: what stands for the buffer.
[[nodiscard]] Json image_json(const Image& image, const std::string& buffer);

}  // namespace demarc::gpu
