// The kernel driver's version, by which what is remembered of a card is found.
#pragma once

#include <iosfwd>
#include <string>

namespace demarc::cuda {

// "580.159.04" of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release
// Build ...", the text of /proc/driver/nvidia/version. Nothing where no word is a version.
[[nodiscard]] std::string version_in(std::istream& text);

}  // namespace demarc::cuda
