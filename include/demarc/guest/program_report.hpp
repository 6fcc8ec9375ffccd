// A report as a part of a larger one.
#pragma once

#include "demarc/base/json.hpp"
#include "demarc/guest/program_record.hpp"

namespace demarc::cuda {

[[nodiscard]] Json json_of(const ProgramReport& report);

}  // namespace demarc::cuda
