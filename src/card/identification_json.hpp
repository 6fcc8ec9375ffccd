#pragma once

#include "demarc/base/json.hpp"
#include "demarc/card/identify.hpp"

namespace demarc::cuda {

[[nodiscard]] Json identification_json(const gpu::Topology& topology, const Identification& found);

}  // namespace demarc::cuda
