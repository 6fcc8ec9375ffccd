// One function a mode; each checks that the card can do it.
#pragma once

#include "demarc/card/backend.hpp"

namespace demarc::cuda {

inline constexpr const char* mps_share_variable = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";

#define DEMARC_MODE(name, ...) \
  [[nodiscard]] Result<std::unique_ptr<Backend>> make_##name##_backend(const CardPointer& card);
#include "demarc/partition/modes.def"
#undef DEMARC_MODE

}  // namespace demarc::cuda
