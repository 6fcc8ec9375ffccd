// The probe kernels (src/card/kernels/probes.cu) and what they measure.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/device/topology.hpp"
#include "demarc/driver/launch.hpp"
#include "demarc/driver/memory.hpp"

namespace demarc::cuda {

// What a probe kernel calls the SM that it runs on.
enum class SmNumbers : std::uint8_t {
  of_launch,  // by %smid, which in a client of MPS counts the SMs that a launch may use
  of_card,    // by the register that names the SM in such a client too (src/card/named_sms.hpp)
};

class ProbeKernels {
 public:
  static Result<ProbeKernels> load(const GpuPointer& gpu, SmNumbers numbers = SmNumbers::of_launch);
  [[nodiscard]] const Function& idle() const { return functions_[0]; }
  [[nodiscard]] const Function& where() const { return functions_[1]; }
  [[nodiscard]] const Function& latency() const { return functions_[2]; }
  [[nodiscard]] const Function& self_lines() const { return functions_[3]; }
  [[nodiscard]] const Function& affine() const { return functions_[4]; }
  // Counters that a launch of where() needs: one for each number that an SM may have.
  [[nodiscard]] std::uint32_t counters() const;
  // SMs that the driver tells of.
  [[nodiscard]] std::uint32_t sms() const { return idle().gpu()->sm_count(); }

 private:
  ProbeKernels(Module module, std::vector<Function> functions, SmNumbers numbers)
      : module_(std::move(module)), functions_(std::move(functions)), numbers_(numbers) {}
  Module module_;
  std::vector<Function> functions_;
  SmNumbers numbers_;
};

// Where the blocks of one launch ran: how many on which SM, by the numbers of its kernel.
struct Placement {
  PerIndex<gpu::SmIndex, std::uint32_t> blocks;
  [[nodiscard]] std::uint64_t total() const;
  [[nodiscard]] std::vector<gpu::SmIndex> used_sms() const;
  // Blocks that ran on SMs not in `allowed` (ascending).
  [[nodiscard]] std::uint64_t outside(const std::vector<gpu::SmIndex>& allowed) const;
};

// Counters of zeros for where(), and what a launch that has ended left in them.
[[nodiscard]] Result<DeviceBuffer> placement_counters(const GpuPointer& gpu,
                                                      const ProbeKernels& kernels);
[[nodiscard]] Result<Placement> read_placement(const DeviceBuffer& counters,
                                               const ProbeKernels& kernels);

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
