// Finds images behind handles, and their texels in memory.
#include "ops/image.hpp"

#include <cstring>

#include "ops/bulk.hpp"

namespace demarc::emulate {

std::uint64_t slot_value(Warp& w, const LaneSlot& slot, unsigned lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, w.frame + slot.offset + (slot.uniform ? 0 : std::size_t{lane} * slot.width),
              slot.width);
  return value;
}

void fail_image(Warp& w, const MicroOp* op, unsigned lane, std::string what) {
  w.block->stop_with(w, op, lane, FindingKind::trap, std::move(what));
}

const PlacedImage* find_image(Warp& w, const MicroOp* op, const ImageOperands& operands,
                              unsigned lane, bool texture) {
  const std::string_view wanted = texture ? "texture" : "surface";
  const std::uint64_t handle = lane_address(w, operands.handle, lane);
  const auto& images = w.program->images;
  const auto index = gpu::image_of_handle(handle);
  if (!index || *index >= images.size()) {
    fail_image(w, op, lane,
               fmt::format("0x{:x} is not a handle of a {} of the launch file", handle, wanted));
    return nullptr;
  }
  const PlacedImage& found = images[*index];
  if (kind_of(found.image) != wanted) {
    fail_image(w, op, lane,
               fmt::format("0x{:x} is the handle of a {}, and a {} was expected", handle,
                           kind_of(found.image), wanted));
    return nullptr;
  }
  const gpu::ImageShape shape = found.image.shape;
  if (operands.any_shape ||
      (dimensions_of(shape) == operands.dimensions && has_layers(shape) == operands.layered))
    return &found;
  fail_image(w, op, lane,
             fmt::format("an access in {}d{} to a {} that is {}", operands.dimensions,
                         operands.layered ? ", layered," : "", wanted, name_of(shape)));
  return nullptr;
}

void access_lanes(Warp& w, const ImageOperands& operands,
                  const std::array<std::uint64_t, warp_size>& places, Mask mask, Access& x,
                  AccessMode mode) {
  std::memcpy(w.at<std::uint64_t>(operands.scratch), places.data(), sizeof places);
  const Mask before = w.mask;
  w.mask = mask;
  if (mask == 0 || !w.program->tables.fronts[operands.part.kind](w, &operands.part, x, mode))
    x.mask = 0;
  w.mask = before;
}

}  // namespace demarc::emulate
