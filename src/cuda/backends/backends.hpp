// One function a mode; each checks that the card can do it.
#pragma once

#include "demarc/cuda/backend.hpp"

namespace demarc::cuda {

[[nodiscard]] Result<std::unique_ptr<Backend>> make_plain_backend(const CardPointer& card,
                                                                  Mode mode);
[[nodiscard]] Result<std::unique_ptr<Backend>> make_mask_backend(const CardPointer& card);
[[nodiscard]] Result<std::unique_ptr<Backend>> make_green_backend(const CardPointer& card);
[[nodiscard]] Result<std::unique_ptr<Backend>> make_affinity_backend(const CardPointer& card);

}  // namespace demarc::cuda
