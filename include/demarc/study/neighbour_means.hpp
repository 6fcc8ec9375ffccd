// What the neighbours in a lane can be made of (neighbour.hpp). The executor says it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace demarc::study {

// Things that not every lane can give.
enum class Need {
  nothing,
  module_variables,  // memory that the module itself declares
  one_slice,         // to know which lines lie in one L2 slice
  host_memory,       // host memory that kernels reach
  copy_engines,      // copies between host and card beside the kernels
};

struct NeighbourMeans {
  std::uint64_t bytes = std::uint64_t{256} << 20U;   // largest footprint of a neighbour
  std::uint32_t shared_bytes = 48 * 1024;            // largest amount per block
  std::uint64_t accesses = std::uint64_t{1} << 27U;  // largest number for all threads in one run
  std::uint64_t in_a_row = std::uint64_t{1} << 14U;  // largest number of accesses of one thread in
                                                     // one run
  std::uint32_t target = 0;                          // compute capability, 90 for 9.0; 0: not known
  std::uint64_t row_bytes = std::uint64_t{1} << 18U;  // steps so long lead to another DRAM row
  // Lines of a page of 2 MiB that lie in the slice of its first line: offsets of 128 bytes.
  std::vector<std::uint32_t> slice_lines;
  // Why the lane does not give a thing. It gives everything that is not named here.
  std::map<Need, std::string> lacking;
};

}  // namespace demarc::study
