// Where tests and benchmarks find the source tree, the build tree and a fresh folder to write in.
#pragma once

#include <filesystem>
#include <string>

namespace demarc::test {

[[nodiscard]] std::filesystem::path source_dir();
[[nodiscard]] std::filesystem::path
build_dir();  // of the preset being tested; holds the program `demarc`

// An empty folder of that name, unique to this process and removed when it ends.
[[nodiscard]] std::filesystem::path fresh_folder(const std::string& name);

// The stand-in for libcuda, in a copy of this process alone: claims of a card are locks of this
// file (lease/card_claim.hpp), and all stand-ins have one UUID.
[[nodiscard]] const std::filesystem::path& fake_libcuda();

}  // namespace demarc::test
