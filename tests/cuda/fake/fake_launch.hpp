// What a launch goes through: its descriptor, its place, its kernel.
#pragma once

#include <vector>

#include "fake_state.hpp"

namespace demarc::fake {

[[nodiscard]] Descriptor build(const FakeConfig& config, const FakeLaunch& launch);
// The memory synchronisation domain that it names (Hopper).
[[nodiscard]] std::uint32_t domain_of(const FakeConfig& config, const Descriptor& descriptor);
// What nodes of one graph say of each other.
void chain_nodes(const FakeConfig& config, std::vector<Descriptor>& nodes);
// The TPCs that the descriptor leaves.
[[nodiscard]] std::vector<std::uint32_t> enabled_by(const FakeConfig& config,
                                                    const Descriptor& descriptor,
                                                    const FakeGreen* green);

// Where the blocks of a launch run; empty when it can never start.
struct Placed {
  std::vector<std::uint32_t> number;  // what the code of each block takes for the number of its SM
  std::vector<std::uint32_t> sm;      // the SM that it is
};

[[nodiscard]] Placed place(FakeGpu& gpu, const FakeLaunch& launch,
                           const std::vector<std::uint32_t>& tpcs);
// Numbers as the module reads them.
void read_numbers(const FakeConfig& config, const FakeSmReading& reading, Placed& placed);
// Its SMs: what a cluster can have at most.
[[nodiscard]] std::uint32_t largest_gpc(const FakeConfig& config);

// Bytes of each argument of a probe kernel; null: no probe kernel has this name.
[[nodiscard]] const std::vector<std::size_t>* probe_arguments(const std::string& name);
// What the driver or the hardware would not let pass of a launch of a probe kernel.
[[nodiscard]] CuResult wrong_with_probe(const FakeGpu& gpu, const FakeLaunch& launch);
// Carries out a probe kernel in C++. What it wrote can be read when the stream is done.
void run_probe(FakeGpu& gpu, FakeStream* stream, const FakeLaunch& launch, const Placed& placed);
// Takes a launch of the kernel that holds its SM (fake_holds.cpp).
void enqueue_hold(FakeGpu& gpu, FakeStream* stream, const FakeLaunch& launch,
                  const std::vector<std::uint32_t>& tpcs);
// Runs any other kernel in the emulator (fake_ptx.cpp).
void run_ptx(FakeGpu& gpu, const FakeLaunch& launch, const Placed& placed);

}  // namespace demarc::fake
