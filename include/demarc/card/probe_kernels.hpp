// The probe kernels (src/card/kernels/probes.cu) and what they measure.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/device/topology.hpp"
#include "demarc/driver/launch.hpp"
#include "demarc/driver/memory.hpp"

namespace demarc::cuda {

class ProbeKernels {
 public:
  static Result<ProbeKernels> load(const GpuPointer& gpu);
  [[nodiscard]] const Function& idle() const { return functions_[0]; }
  [[nodiscard]] const Function& where() const { return functions_[1]; }
  [[nodiscard]] const Function& latency() const { return functions_[2]; }
  [[nodiscard]] const Function& self_lines() const { return functions_[3]; }
  [[nodiscard]] const Function& affine() const { return functions_[4]; }

 private:
  ProbeKernels(Module module, std::vector<Function> functions)
      : module_(std::move(module)), functions_(std::move(functions)) {}
  Module module_;
  std::vector<Function> functions_;
};

// Where the blocks of one launch ran: how many on which SM. Inside MPS partitions SMs may be
// virtual.
struct Placement {
  PerIndex<gpu::SmIndex, std::uint32_t> blocks;
  [[nodiscard]] std::uint64_t total() const;
  [[nodiscard]] std::vector<gpu::SmIndex> used_sms() const;
  // Blocks that ran on SMs not in `allowed` (ascending).
  [[nodiscard]] std::uint64_t outside(const std::vector<gpu::SmIndex>& allowed) const;
};

// Launches the placement probe and waits. Each block holds its SM for `spin_cycles`.
[[nodiscard]] Result<Placement> probe_placement(const Stream& stream, const ProbeKernels& kernels,
                                                const LaunchShape& shape,
                                                std::uint64_t spin_cycles);

// Dynamic shared memory that lets only one block onto an SM, after raising the kernel's limit.
[[nodiscard]] Result<std::uint32_t> whole_sm_shared_bytes(const Function& function);

// The SMs of each cluster's blocks, one block per SM, from launches of clusters of several sizes.
// Empty when the card has no clusters.
[[nodiscard]] Result<std::vector<std::vector<gpu::SmIndex>>> probe_clusters(
    const Stream& stream, const ProbeKernels& kernels);

// [sm][line]: cycles of one load that hits the L2. No lines: the SM was not reached.
using SmLatencies = PerIndex<gpu::SmIndex, std::vector<double>>;
// From each SM to each of `lines` lines that lie `stride` bytes apart in `buffer`. One SM measures
// at a time.
[[nodiscard]] Result<SmLatencies> probe_latencies(const Stream& stream, const ProbeKernels& kernels,
                                                  const DeviceBuffer& buffer, std::uint64_t stride,
                                                  std::uint32_t lines, std::uint32_t repeats);

}  // namespace demarc::cuda
