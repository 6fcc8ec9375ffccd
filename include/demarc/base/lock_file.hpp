// Locks a file that exists for its lock alone, and that its owner may remove.
#pragma once

#include <string>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/result.hpp"

namespace demarc {

// Opens the file, or creates it with mode 0600, and locks it until the descriptor is closed. The
// owner may unlink the path while it has the lock: a lock counts only if the path still leads to
// the locked file. Without a descriptor (get() is -1) another process has the lock. invalid_input
// if the file cannot be opened, missing_capability if it cannot be locked; both begin with the
// path.
[[nodiscard]] Result<OwnedFile> try_lock_file(const std::string& path);

}  // namespace demarc
