// The texts of devices/*.json.
#pragma once

#include <span>

#include "demarc/base/named_text.hpp"

namespace demarc::gpu {

[[nodiscard]] std::span<const NamedText> builtin_devices();

}  // namespace demarc::gpu
