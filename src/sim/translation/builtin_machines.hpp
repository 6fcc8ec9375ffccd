// The texts of devices/machines/*.json.
#pragma once

#include <span>

#include "demarc/base/named_text.hpp"

namespace demarc::sim::translation {

[[nodiscard]] std::span<const NamedText> builtin_machines();

}  // namespace demarc::sim::translation
