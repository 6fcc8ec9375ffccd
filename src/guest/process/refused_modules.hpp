// Modules that a partition could not hold: those with __managed__ variables, memory that the driver
// moves between card and host and that kernels reach without any call for it; and those whose
// kernels launch kernels.
#pragma once

#include <optional>
#include <string>

#include "demarc/driver/driver_call.hpp"

namespace demarc::cuda {

// Why the module that the call loads must not be loaded where kernels get no host memory: it
// has managed variables, which are named, or it cannot be read. Nothing where the call loads
// nothing, or a module without.
[[nodiscard]] std::optional<std::string> refused_module(const DriverCall& call);

// The same under a mask of TPCs: it calls CUDA's device runtime, whose launches ignore masks.
[[nodiscard]] std::optional<std::string> launching_module(const DriverCall& call);

}  // namespace demarc::cuda
