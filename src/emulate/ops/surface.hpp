// Loads, stores and reductions of surfaces, which count bytes along a row.
#pragma once

#include "ops/image.hpp"

namespace demarc::emulate {

// What an access outside of a surface does.
enum class SurfaceBoundary : std::uint8_t { trap, clamp, zero };

struct SurfaceDetails {
  ImageOperands operands;  // part: all bytes of the access
  SurfaceBoundary boundary = SurfaceBoundary::trap;
  AccessMode mode = AccessMode::load;
  std::uint32_t element_bytes = 4;
  unsigned count = 1;  // elements
  static constexpr std::uint32_t sink = ~std::uint32_t{0};
  LaneSlot values[4];  // offset may be sink where they are loaded
  AtomicKind kind = AtomicKind::add;
  AtomicType type = AtomicType::u32;
};

namespace surface_ops {
const MicroOp* access(Warp& w, const MicroOp* op);  // aux: SurfaceDetails
}  // namespace surface_ops

}  // namespace demarc::emulate
