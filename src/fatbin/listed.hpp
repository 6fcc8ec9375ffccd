// The entries of a file's images in one form: a PTX text or a cubin is an image of one entry.
#pragma once

#include <string>
#include <vector>

#include "demarc/fatbin/entry.hpp"
#include "demarc/fatbin/files.hpp"

namespace demarc::fatbin {

// An error where the image cannot be taken apart.
[[nodiscard]] Result<std::vector<Entry>> entries_of(const FileImage& image);

}  // namespace demarc::fatbin
