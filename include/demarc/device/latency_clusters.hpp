// Chunks of memory told apart by how long an L2 hit takes from several SMs: chunks of one L2 slice
// have the same vector of latencies (docs/probe.md). Pure arithmetic on measured vectors.
//
// It cannot tell slices apart that are equally far from every chosen SM.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace demarc::gpu {

// Row-major: vectors.size() = count * dimensions, one row per chunk, one column per SM.
struct LatencyMatrix {
  std::uint32_t dimensions = 0;
  std::vector<float> values;

  [[nodiscard]] std::size_t count() const {
    return dimensions == 0 ? 0 : values.size() / dimensions;
  }
  [[nodiscard]] std::span<const float> row(std::size_t i) const {
    return std::span(values).subspan(i * dimensions, dimensions);
  }
};

struct LatencyClusters {
  LatencyMatrix centers;               // one row per cluster
  std::vector<std::uint32_t> sizes;    // chunks of each cluster
  std::vector<std::uint32_t> cluster;  // per row of the input
  double noise = 0;                    // standard deviation of one latency about its centre
  double separation = 0;               // least distance of two centres, in units of `noise`
  std::vector<std::uint32_t> residual_histogram;  // distance to the own centre, bins of noise / 4

  // The nearest centre, and how clear the choice is: the distance to the second nearest, divided by
  // the distance to the nearest.
  struct Match {
    std::uint32_t cluster = 0;
    double distance = 0;
    double clarity = 0;
  };
  [[nodiscard]] Match match(std::span<const float> latencies) const;
};

// Clusters smaller than `least_size` are noise: their rows go to the nearest other cluster. An
// empty input gives no clusters. Deterministic.
[[nodiscard]] LatencyClusters cluster_latencies(const LatencyMatrix& latencies,
                                                std::uint32_t least_size);

}  // namespace demarc::gpu
