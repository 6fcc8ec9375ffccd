// Short names of bundled workloads.
#pragma once

#include <string>
#include <string_view>

namespace demarc::study {

// "MM" and "mm" are matmul_tiled, and so on: the abbreviations of the paper (Fractional GPUs,
// section VI), and the stress kernels in short. Other names come back in lower case.
[[nodiscard]] std::string full_workload_name(std::string_view name);

// Of a bundled workload; empty where it has none.
[[nodiscard]] std::string short_workload_name(std::string_view full);

}  // namespace demarc::study
