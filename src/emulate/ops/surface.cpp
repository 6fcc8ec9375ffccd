// Carries out accesses to surfaces.
#include "ops/surface.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "ops/bulk.hpp"

namespace demarc::emulate {
namespace {

// One access of a warp.
class SurfaceAccess {
 public:
  SurfaceAccess(Warp& w, const MicroOp* op, const SurfaceDetails& details)
      : w_(w), op_(op), details_(details) {}

  // False: it stops the kernel.
  bool run();

 private:
  bool prepare(unsigned lane);
  bool settle(std::int64_t& at, std::int64_t most, bool& inside) const;
  void move(unsigned lane, std::byte* place);

  Warp& w_;
  const MicroOp* op_;
  const SurfaceDetails& details_;
  std::array<std::uint64_t, warp_size> places_{};
  Mask inside_ = 0;
};

// A coordinate within 0 .. most, or moved there, or outside. False: it traps.
bool SurfaceAccess::settle(std::int64_t& at, std::int64_t most, bool& inside) const {
  if (at >= 0 && at <= most) return true;
  if (details_.boundary == SurfaceBoundary::clamp) {
    at = std::clamp<std::int64_t>(at, 0, most);
    return true;
  }
  inside = false;
  return details_.boundary == SurfaceBoundary::zero;
}

bool SurfaceAccess::prepare(unsigned lane) {
  const ImageOperands& operands = details_.operands;
  const PlacedImage* placed = find_image(w_, op_, operands, lane, false);
  if (placed == nullptr) return false;
  const gpu::Image& image = placed->image;
  const std::int64_t bytes = operands.part.bytes;
  std::array<std::int64_t, 3> at{};
  for (unsigned axis = 0; axis < operands.dimensions; ++axis)
    at[axis] = static_cast<std::int32_t>(slot_value(w_, operands.coordinates[axis], lane));
  std::int64_t layer =
      operands.layered ? static_cast<std::int64_t>(slot_value(w_, operands.layer, lane)) : 0;
  if (at[0] % bytes != 0) {
    fail_image(
        w_, op_, lane,
        fmt::format("byte {} of a surface's row is not a multiple of the {} that are accessed",
                    at[0], bytes));
    return false;
  }
  const auto row_bytes = static_cast<std::int64_t>(image.row_bytes());
  bool inside = true;
  bool goes_on = row_bytes >= bytes;
  goes_on = goes_on && settle(at[0], (row_bytes / bytes - 1) * bytes, inside);
  for (unsigned axis = 1; axis < operands.dimensions; ++axis)
    goes_on = goes_on && settle(at[axis], std::int64_t{image.size[axis]} - 1, inside);
  goes_on = goes_on && settle(layer, std::int64_t{image.layers} - 1, inside);
  if (!goes_on) {
    fail_image(w_, op_, lane,
               fmt::format("{} bytes at byte {}, row {}, plane {}, layer {} are not within a "
                           "surface with rows of {} bytes, {} rows, {} planes, {} layers",
                           bytes, at[0], at[1], at[2], layer, row_bytes, image.size[1],
                           image.size[2], image.layers));
    return false;
  }
  if (!inside) return true;
  inside_ |= Mask{1} << lane;
  const auto plane = static_cast<std::uint64_t>(layer * image.size[2] + at[2]);
  const std::uint64_t row = plane * image.size[1] + static_cast<std::uint64_t>(at[1]);
  places_[lane] = placed->address + row * image.pitch + static_cast<std::uint64_t>(at[0]);
  return true;
}

void SurfaceAccess::move(unsigned lane, std::byte* place) {
  const std::uint32_t bytes = details_.element_bytes;
  for (unsigned i = 0; i < details_.count; ++i, place += bytes) {
    const LaneSlot& value = details_.values[i];
    if (details_.mode == AccessMode::load) {
      if (value.offset == SurfaceDetails::sink) continue;
      std::uint64_t loaded = 0;
      std::memcpy(&loaded, place, bytes);
      std::memcpy(w_.frame + value.offset + std::size_t{lane} * value.width, &loaded, value.width);
      continue;
    }
    std::uint64_t stored = slot_value(w_, value, lane);
    if (details_.mode == AccessMode::atomic) {
      std::uint64_t old = 0;
      std::memcpy(&old, place, bytes);
      stored = atomic_value(details_.kind, details_.type, old, stored, 0, false);
    }
    std::memcpy(place, &stored, bytes);
  }
}

bool SurfaceAccess::run() {
  for (Mask rest = w_.mask; rest != 0; rest &= rest - 1) {
    if (!prepare(static_cast<unsigned>(std::countr_zero(rest)))) return false;
  }
  Access x;
  access_lanes(w_, details_.operands, places_, inside_, x, details_.mode);
  for (Mask rest = w_.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::array<std::byte, 32> nothing{};
    if (((x.mask >> lane) & 1U) != 0) {
      move(lane, host_place(x, lane));
    } else if (details_.mode == AccessMode::load) {
      move(lane, nothing.data());
    }
  }
  return true;
}

}  // namespace

namespace surface_ops {

const MicroOp* access(Warp& w, const MicroOp* op) {
  return SurfaceAccess(w, op, *static_cast<const SurfaceDetails*>(op->aux)).run() ? op + 1
                                                                                  : nullptr;
}

}  // namespace surface_ops
}  // namespace demarc::emulate
