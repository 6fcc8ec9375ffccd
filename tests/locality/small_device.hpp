// A device small enough to count by hand, and blocks that read it.
#pragma once

#include "demarc/device/device.hpp"
#include "demarc/locality/predict.hpp"

namespace demarc::locality::test {

inline gpu::Device small_device() {
  gpu::Device device;
  device.name = "small";
  device.sm_clock_hz = 1e9;
  device.sm.shared_bytes = 0;
  for (std::uint32_t t = 0; t < 2; ++t) {
    gpu::Tpc tpc;
    tpc.sms = {gpu::SmIndex(t)};
    device.topology.tpcs.push_back(tpc);
  }
  device.l1.size_bytes = 32768;
  device.l2.size_bytes = 1U << 20U;
  device.l2.slices = 16;
  device.dram.bandwidth_bytes_per_s = 1e11;
  return device;
}

// `blocks` blocks of 32 threads; block b reads 128 bytes at base + step * b, `times` times.
inline AccessRuns reading(std::uint32_t blocks, std::uint64_t step, std::uint32_t times) {
  AccessRuns runs;
  runs.grid = {blocks, 1, 1};
  runs.block = {32, 1, 1};
  runs.accesses.resize(1);
  for (std::uint32_t b = 0; b < blocks; ++b)
    for (std::uint32_t k = 0; k < times; ++k)
      runs.runs.push_back({.address = 0x10000 + step * b,
                           .stride = 4,
                           .block = b,
                           .count = 32,
                           .request = k,
                           .step = k});
  return runs;
}

}  // namespace demarc::locality::test
