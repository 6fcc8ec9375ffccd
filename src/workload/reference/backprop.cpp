// Computes what the kernels of a neural network's layer must give.
#include <array>

#include "references.hpp"

namespace demarc::workload {
namespace {

constexpr std::size_t tile_side = 16;

void forward_block(const ReferenceCall& call, std::size_t block) {
  const std::size_t hidden = call.parameter("hidden");
  const auto input = call.floats("input");
  const auto weights = call.floats("forward_weights");
  std::array<std::array<float, tile_side>, tile_side> products{};
  const auto index = [&](std::size_t ty, std::size_t tx) {
    return (hidden + 1) * tile_side * block + (hidden + 1) * ty + tx + hidden + 2;
  };
  for (std::size_t ty = 0; ty < tile_side; ++ty) {
    for (std::size_t tx = 0; tx < tile_side; ++tx) {
      products[ty][tx] = weights[index(ty, tx)] * input[tile_side * block + ty + 1];
    }
  }
  for (std::size_t stride = 1; stride < tile_side; stride *= 2) {
    for (std::size_t ty = 0; ty < tile_side; ty += 2 * stride) {
      for (std::size_t tx = 0; tx < tile_side; ++tx) products[ty][tx] += products[ty + stride][tx];
    }
  }
  for (std::size_t ty = 0; ty < tile_side; ++ty) {
    for (std::size_t tx = 0; tx < tile_side; ++tx) weights[index(ty, tx)] = products[ty][tx];
    call.floats("partial_sums")[block * hidden + ty] = products[0][ty];
  }
}

}  // namespace

void backprop_reference(const ReferenceCall& call) {
  const std::size_t hidden = call.parameter("hidden");
  const std::size_t inputs = call.parameter("inputs");
  for (std::size_t block = 0; block < inputs / tile_side; ++block) forward_block(call, block);

  const auto delta = call.floats("delta");
  const auto layer = call.floats("input");
  const auto weights = call.floats("weights");
  const auto old = call.floats("old_weights");
  const auto update = [&](std::size_t at, double change) {
    weights[at] = static_cast<float>(weights[at] + (change + 0.3 * double{old[at]}));
    old[at] = static_cast<float>(change + 0.3 * double{old[at]});
  };
  for (std::size_t input = 1; input <= inputs; ++input) {
    for (std::size_t unit = 1; unit <= hidden; ++unit) {
      update((hidden + 1) * input + unit, 0.3 * double{delta[unit]} * double{layer[input]});
    }
  }
  for (std::size_t unit = 1; unit <= hidden; ++unit) update(unit, 0.3 * double{delta[unit]});
}

}  // namespace demarc::workload
