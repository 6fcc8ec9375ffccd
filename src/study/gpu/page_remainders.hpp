// What each page of an H200 adds to the numbers of its chunks, found by timing L2 hits: as
// page_colors.hpp, for colours that are remainders (gpu/remainder_coloring.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/gpu/latency_clusters.hpp"
#include "demarc/gpu/remainder_coloring.hpp"

namespace demarc::study {

// Slices by the latencies of one page, whose own remainder is called 0.
struct RemainderModel {
  gpu::RemainderHash hash;
  gpu::LatencyClusters kinds;
  std::vector<std::uint32_t> kind_of;  // [half * modulus + remainder]: nearest kind of latencies
  std::uint32_t constant = 0;          // of the digits of that page
  double agreement = 0;                // share of its chunks that have the kind of their slice
};

// `latencies` has a row for each chunk of the page. check_failed when the remainders do not explain
// nine in ten: another hash is at work.
[[nodiscard]] Result<RemainderModel> make_remainder_model(gpu::RemainderHash hash,
                                                          const gpu::LatencyMatrix& latencies);

struct PageRemainder {
  std::uint32_t constant = 0;   // of the digits
  std::uint32_t remainder = 0;  // of the page's first number, compared with the model's page
  double agreement = 0;         // share of the samples
};

// From samples of one page: row first_row + i of `latencies` was measured at offsets[i] of it.
[[nodiscard]] PageRemainder find_page_remainder(const RemainderModel& model,
                                                std::span<const std::uint64_t> offsets,
                                                const gpu::LatencyMatrix& latencies,
                                                std::size_t first_row);

// An order in which the remainders of the pages go on, from a page of remainder 0: place i holds a
// page of remainder i * numbers_a_page modulo the modulus. Ends where such a page is lacking.
[[nodiscard]] std::vector<std::uint32_t> order_by_remainder(const RemainderModel& model,
                                                            std::span<const PageRemainder> pages);

// Of each remainder, the L2 side that is nearer; sides[i] is that of column i of the latencies.
[[nodiscard]] std::vector<std::uint32_t> sides_of_remainders(const RemainderModel& model,
                                                             std::span<const std::uint32_t> sides);

// `parts` (2 or 4) runs of remainders, each on one side, the first ones on side 0: sides, or the
// outer thirds of sides.
[[nodiscard]] Result<std::vector<gpu::RemainderColoring::Window>> windows_by_side(
    std::span<const std::uint32_t> side_of_remainder, std::uint32_t parts);

}  // namespace demarc::study
