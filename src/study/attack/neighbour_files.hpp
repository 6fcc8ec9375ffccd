// A neighbour as files: what lanes load, and what a hunt leaves.
#pragma once

#include <filesystem>
#include <string>

#include "demarc/study/neighbour.hpp"

namespace demarc::study {

// STEM.ptx and then STEM.json in `folder`; gives the path of the latter.
[[nodiscard]] Result<std::filesystem::path> write_neighbour(const std::filesystem::path& folder,
                                                            const std::string& stem,
                                                            const Neighbour& neighbour,
                                                            const NeighbourMeans& means);

}  // namespace demarc::study
