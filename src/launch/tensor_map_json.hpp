// Tensor maps in launch files.
#pragma once

#include <string>

#include "demarc/base/json.hpp"
#include "demarc/launch/launch.hpp"
#include "expression.hpp"

namespace demarc::gpu {

// All that `object` says but for its buffer, which the caller has asked it for.
[[nodiscard]] Result<TensorMap> read_tensor_map(JsonObject& object, const Variables& variables);

// `buffer`: what stands for the buffer.
[[nodiscard]] Json tensor_map_json(const TensorMap& map, const std::string& buffer);

}  // namespace demarc::gpu
