// The kernel driver's version, by which what is remembered of a card is found, and CUDA's.
#pragma once

#include <iosfwd>
#include <string>

namespace demarc::cuda {

// "580.159.04" of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release
// Build ...", the text of /proc/driver/nvidia/version. Nothing where no word is a version.
[[nodiscard]] std::string version_in(std::istream& text);

// "13.0" of 13000, as cuDriverGetVersion() tells it.
[[nodiscard]] std::string cuda_version_text(int version);

}  // namespace demarc::cuda
