// Copies between plain memory and coloured memory whose runs are too short for two-dimensional
// copies of the driver. See colored_copy.hpp.
// demarc: needs nvcc
#include "../../../include/demarc/card/colored.cuh"

using u64 = unsigned long long;

// `bytes` bytes from colored.address(0) on, and as many at `plain`; both lie equally within 16
// bytes: plain % 16 is colored.first % 16.
extern "C" __global__ void __launch_bounds__(256)
    demarc_copy_colored(demarc::colored_layout<demarc::remainders> colored, u64 plain, u64 bytes,
                        unsigned to_colored) {
  const u64 ahead = plain & 15U;
  colored.first -= ahead;
  plain -= ahead;
  const u64 end = ahead + bytes;
  const u64 step = 16ULL * gridDim.x * blockDim.x;
  for (u64 at = 16ULL * (blockIdx.x * blockDim.x + threadIdx.x); at < end; at += step) {
    const u64 there = colored.address(at);
    const u64 here = plain + at;
    const u64 from = to_colored != 0 ? here : there;
    const u64 to = to_colored != 0 ? there : here;
    if (at >= ahead && at + 16 <= end) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
      continue;
    }
    for (unsigned i = 0; i < 16; ++i) {
      if (at + i < ahead || at + i >= end) continue;
      *reinterpret_cast<unsigned char*>(to + i) = *reinterpret_cast<const unsigned char*>(from + i);
    }
  }
}
