// CUDA's versions as people read them.
#pragma once

#include <fmt/format.h>

#include <string>

namespace demarc::cuda {

// "13.0" of 13000; the last digit counts patches.
inline std::string version_text(int cuda_version) {
  return fmt::format("{}.{}", cuda_version / 1000, cuda_version % 1000 / 10);
}

}  // namespace demarc::cuda
