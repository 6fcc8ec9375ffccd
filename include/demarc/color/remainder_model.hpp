// Finds what each page adds to the numbers of its chunks, if slices are remainders
// (remainder_coloring.hpp). It is found by timing L2 hits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/color/remainder_coloring.hpp"
#include "demarc/device/latency_clusters.hpp"

namespace demarc::color {

// Slices by the latencies of one page, whose own remainder is called 0.
struct RemainderModel {
  RemainderHash hash;
  gpu::LatencyClusters kinds;
  std::vector<std::uint32_t> kind_of;  // [half * modulus + remainder]: nearest kind of latencies
  std::uint32_t constant = 0;          // constant of the digits of that page
  double agreement = 0;                // share of its chunks that have the kind of their slice
};

// `latencies` has a row for each chunk of the page. check_failed if the remainders explain less
// than nine in ten of them: then another hash is at work.
[[nodiscard]] Result<RemainderModel> make_remainder_model(RemainderHash hash,
                                                          const gpu::LatencyMatrix& latencies);

struct PageRemainder {
  std::uint32_t constant = 0;   // constant of the digits
  std::uint32_t remainder = 0;  // of the page's first number, compared with the model's page
  double agreement = 0;         // share of the samples
};

// From samples of one page: row first_row + i of `latencies` was measured at offsets[i] of it.
[[nodiscard]] PageRemainder find_page_remainder(const RemainderModel& model,
                                                std::span<const std::uint64_t> offsets,
                                                const gpu::LatencyMatrix& latencies,
                                                std::size_t first_row);

// The remainders, compared with the model's page, for which most samples of the chunks of one
// number speak. There is more than one if slices look alike.
struct NumberRemainders {
  std::vector<std::uint32_t> remainders;
  double agreement = 0;  // share of the samples
};

// Takes the arguments of find_page_remainder(). What the page adds to the half does not matter.
[[nodiscard]] NumberRemainders find_number_remainders(const RemainderModel& model,
                                                      std::span<const std::uint64_t> offsets,
                                                      const gpu::LatencyMatrix& latencies,
                                                      std::size_t first_row);

}  // namespace demarc::color
