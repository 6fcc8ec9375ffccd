// The truth that probes find out.
#pragma once

#include "fake_state.hpp"

namespace demarc::fake {

struct PlantedChunk {
  std::uint64_t module, slice, side;
};
PlantedChunk planted_chunk(FakeGpu& gpu, std::uint64_t address);
// Cycles of one load of a mapped address: what its slice is to the SM.
double slice_latency(FakeGpu& gpu, std::uint32_t sm, std::uint64_t address);
// The same of a line of a buffer, whose lines lie in slices of their own.
double planted_latency(FakeGpu& gpu, std::uint32_t sm, std::uint64_t line);

}  // namespace demarc::fake
