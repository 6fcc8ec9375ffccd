// Fetches from textures, and questions for the sizes of images.
#pragma once

#include "ops/image.hpp"
#include "ops/texels.hpp"

namespace demarc::emulate {

struct FetchDetails {
  ImageOperands operands;
  bool floats = true;    // coordinates; otherwise they are indices
  bool gathers = false;  // one channel of four neighbours
  unsigned channel = 0;  // which, then
  bool gives_floats = true;
  static constexpr std::uint32_t sink = ~std::uint32_t{0};
  std::uint32_t results[gpu::max_channels] = {sink, sink, sink, sink};  // slots of 32 bits
};

enum class ImageQuestion : std::uint8_t { width, height, depth, layers };

struct QueryDetails {
  ImageOperands operands;  // the handle alone
  bool texture = true;
  ImageQuestion question = ImageQuestion::width;
};

namespace texture_ops {
const MicroOp* fetch(Warp& w, const MicroOp* op);  // aux: FetchDetails
const MicroOp* query(Warp& w, const MicroOp* op);  // aux: QueryDetails; d: 32 bits
}  // namespace texture_ops

}  // namespace demarc::emulate
