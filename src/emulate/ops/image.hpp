// What fetches from textures and accesses to surfaces have in common: handles, coordinates, and
// places of a buffer that lanes read or write.
#pragma once

#include <array>
#include <string>

#include "machine.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

inline constexpr unsigned max_image_coordinates = 3;

// Slots of a frame that lanes read.
struct LaneSlot {
  std::uint32_t offset = 0;
  std::uint8_t width = 4;  // bytes of a lane
  bool uniform = false;
};

// [handle, {coordinates}]
struct ImageOperands {
  MicroOp handle;           // its address is the handle
  unsigned dimensions = 1;  // without layers
  bool layered = false;
  bool any_shape = false;  // neither is asked for
  LaneSlot layer;
  LaneSlot coordinates[max_image_coordinates];
  MicroOp part;               // an access to global memory
  std::uint32_t scratch = 0;  // slot of 32 addresses
};

[[nodiscard]] std::uint64_t slot_value(Warp& w, const LaneSlot& slot, unsigned lane);

// The image that a lane's handle is of, where it is a texture (or a surface) with as many
// dimensions as the instruction; otherwise null, and a finding says why.
[[nodiscard]] const PlacedImage* find_image(Warp& w, const MicroOp* op,
                                            const ImageOperands& operands, unsigned lane,
                                            bool texture);
// A finding that ends the kernel, as on a card.
void fail_image(Warp& w, const MicroOp* op, unsigned lane, std::string what);

// The lanes of `mask` access an address each, through the checks of global memory.
// Access::mask has those that may.
void access_lanes(Warp& w, const ImageOperands& operands,
                  const std::array<std::uint64_t, warp_size>& places, Mask mask, Access& x,
                  AccessMode mode);

}  // namespace demarc::emulate
