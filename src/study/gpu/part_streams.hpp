// Streams confined to equal parts of a GPU within this process, shown by probe kernels to run where
// they should before anything is measured on them.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "demarc/cuda/card.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::study {

struct PartStreams {
  std::vector<std::shared_ptr<const cuda::Stream>> streams;  // one a part
  std::vector<std::uint32_t> sms;  // of each part alone; empty when parts share SMs
  std::string account;             // where they run, in words
};

// No confinement at all; check_failed when a stream does not reach every SM.
[[nodiscard]] Result<PartStreams> open_free_streams(const cuda::GpuPointer& gpu,
                                                    std::uint32_t parts);

// Stream masks. Each lives as long as its stream. `first_priority`: of the stream of part 0.
[[nodiscard]] Result<PartStreams> open_masked_streams(
    const cuda::CardPointer& card, const std::vector<partition::Partition>& partitions,
    int first_priority = 0);

// Green contexts over equal runs of SMs in the driver's order. Must come before a Card with masks
// is opened: the driver creates no green context once its launch callback is in use (CUDA 13.0).
[[nodiscard]] Result<PartStreams> open_green_streams(const cuda::GpuPointer& gpu,
                                                     std::uint32_t parts);

// Bit s of word s / 32: SM s belongs to one of the partition's TPCs.
[[nodiscard]] std::array<std::uint32_t, 8> sm_bits(const gpu::Topology& topology,
                                                   const partition::TpcSet& tpcs);

// {0, 1, 2, 5} -> "0-2, 5"
[[nodiscard]] std::string ranges_text(const std::vector<std::uint32_t>& ascending);

}  // namespace demarc::study
