#pragma once

#include "demarc/base/json.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"

namespace demarc::sim {

[[nodiscard]] Json metrics_json(const TbMetrics& metrics);

}  // namespace demarc::sim
