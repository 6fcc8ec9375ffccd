// Short names of bundled workloads: the abbreviations of the paper (Fractional GPUs, section VI),
// and the stress kernels in short. To add one: its row in src/workload/short_names.cpp.
#pragma once

#include <string>
#include <string_view>

namespace demarc::workload {

// "MM" and "mm" are matmul_tiled, and so on. Other names come back in lower case.
[[nodiscard]] std::string full_name(std::string_view name);

// Of a bundled workload; empty where it has none.
[[nodiscard]] std::string short_name(std::string_view full);

}  // namespace demarc::workload
