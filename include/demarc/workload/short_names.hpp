// Short names of bundled workloads: the abbreviations of the paper (Fractional GPUs, section VI),
// and short forms for the stress kernels. To add one, write its row in
// src/workload/short_names.cpp.
#pragma once

#include <string>
#include <string_view>

namespace demarc::workload {

// "MM" and "mm" are matmul_tiled, and so on. Other names come back in lower case.
[[nodiscard]] std::string full_name(std::string_view name);

// The short name of a bundled workload; empty if it has none.
[[nodiscard]] std::string short_name(std::string_view full);

}  // namespace demarc::workload
