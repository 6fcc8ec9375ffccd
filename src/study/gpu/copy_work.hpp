// A neighbour of the copy engines: a buffer of the host and one of the card, copied over and over.
#pragma once

#include <memory>

#include "gpu/resident_launch.hpp"

namespace demarc::study {

// As many bytes as the launch's first buffer has, once for each of its kernels. A copy engine knows
// no colours: the buffer on the card is plain memory in every mode, as the one is through which
// coloured memory is filled (cuda/colored_copy.hpp). missing_capability where there is no room.
[[nodiscard]] Result<std::unique_ptr<LaneWork>> make_copy_work(const cuda::GpuPointer& gpu,
                                                               const LoadedLaunch& loaded);

}  // namespace demarc::study
