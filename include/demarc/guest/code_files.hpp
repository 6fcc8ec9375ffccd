// The files that a process has mapped as code: its executable and the libraries that are loaded.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace demarc::cuda {

// Paths of the files that have executable pages in `process`, a folder of /proc: "thread-self",
// "1234". The kernel writes " (deleted)" behind the path of a file that is gone. Nothing: the list
// cannot be read.
[[nodiscard]] std::optional<std::set<std::string>> code_files_of(const std::string& process);

// Whether a file is one of the driver's own libraries. What they hold belongs to no program.
[[nodiscard]] bool is_of_the_driver(const std::string& path);

}  // namespace demarc::cuda
